-- The scripts that settle or renew a claim have this part too. It reads what tells whose the key is.
local names = {'status', 'owner', 'lease', 'expiry', 'attempts'}
local values = redis.pcall('HMGET', key, unpack(names))
if failed(values) then
	return failure(values)
end
local held, refused = {}, {'held'}
for i, name in ipairs(names) do
	if values[i] then
		held[name] = values[i]
		refused[#refused + 1], refused[#refused + 2] = name, values[i]
	end
end
if #refused == 1 and redis.call('EXISTS', key) == 1 then
	refused[2], refused[3] = 'status', '' -- it is there, and not of this layout
end

-- mine reports whether the key is in progress under the owner.
local function mine(owner)
	return held.status == 'INPROGRESS' and held.owner == owner
end

local function expired(now)
	local expiry = whole(held.expiry)
	return expiry == nil or expiry < tonumber(now)
end
