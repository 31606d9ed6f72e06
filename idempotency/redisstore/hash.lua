-- Every script begins with this part. It works on one key, declared as such, and reads no clock.
local key = KEYS[1]

-- whole returns the number in a field, nil if it is none or not a whole one.
local function whole(field)
	return field and string.find(field, '^%-?%d+$') and tonumber(field) or nil
end

-- failure returns what to reply where a command has failed before anything was written.
local function failure(reply)
	if string.find(reply.err, 'WRONGTYPE', 1, true) then
		return {'type', redis.call('TYPE', key).ok}
	end
	return reply
end

local function failed(reply)
	return type(reply) == 'table' and reply.err ~= nil
end
