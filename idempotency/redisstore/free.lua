-- The scripts for which a key may be free have this part too. It reads all that is held.
local fields = redis.pcall('HGETALL', key)
if failed(fields) then
	return failure(fields)
end
local held = {}
for i = 1, #fields, 2 do
	held[fields[i]] = fields[i + 1]
end

local function expired(now)
	local expiry = whole(held.expiry)
	return expiry ~= nil and expiry < tonumber(now)
end

-- isFree reports whether a claim may have the key: at now in seconds, of a lease that ended before free in milliseconds.
-- What is not of this layout is not free.
local function isFree(now, free)
	if #fields == 0 then
		return true
	end
	if held.status == 'INPROGRESS' and held.lease then
		local lease = whole(held.lease)
		return lease ~= nil and lease < tonumber(free)
	end
	return (held.status == 'INPROGRESS' or held.status == 'COMPLETED') and expired(now)
end

-- refused returns the reply that says what is held.
local function refused()
	table.insert(fields, 1, 'held')
	return fields
end

-- replace writes the entry in place of what is held, and returns the error of that, nil for none.
local function replace(entry, ttl)
	-- A server that is full refuses a write that needs memory only where it is the script's first. So a new key is refused,
	-- and one that is there is not: see https://redis.io/docs/latest/develop/reference/errors/common/oom/ and script.c of
	-- Redis.
	if #fields > 0 then
		redis.call('DEL', key)
	end
	local written = redis.pcall('HSET', key, unpack(entry))
	if failed(written) then
		return written
	end
	redis.call('PEXPIRE', key, ttl)
end
