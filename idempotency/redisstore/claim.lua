-- Replies {'done', whether another's claim was taken over, attempts} or {'held', field, value, ...}.
local owner, now, free, lease, expiry, ttl, count, fingerprint = unpack(ARGV)

local fields = redis.pcall('HGETALL', key)
if failed(fields) then
	return failure(fields)
end
local found = #fields > 0
local tookOver, attempts = '0', 0
if found then
	local held = {}
	for i = 1, #fields, 2 do
		held[fields[i]] = fields[i + 1]
	end
	local leaseEnd, expiryEnd = whole(held.lease), whole(held.expiry)
	local inProgress = held.status == 'INPROGRESS'
	local expired = expiryEnd ~= nil and expiryEnd < tonumber(now)
	local isFree = false -- what is not of this layout is not free
	if inProgress and held.lease then
		isFree = leaseEnd ~= nil and leaseEnd < tonumber(free)
	elseif inProgress or held.status == 'COMPLETED' then
		isFree = expired
	end
	if not isFree then
		table.insert(fields, 1, 'held')
		return fields
	end
	if inProgress and leaseEnd ~= 0 then -- 0: it was released
		tookOver = '1'
	end
	if not expired then
		attempts = math.max(whole(held.attempts) or 0, 0)
	end
end

local entry = {'status', 'INPROGRESS', 'owner', owner, 'lease', lease, 'expiry', expiry}
if fingerprint ~= '' then
	entry[#entry + 1], entry[#entry + 2] = 'fingerprint', fingerprint
end
if count == '1' then
	attempts = attempts + 1
	entry[#entry + 1], entry[#entry + 2] = 'attempts', string.format('%d', attempts)
else
	attempts = 0
end
-- A server that is full refuses a write that needs memory only where it is the script's first. So a new key is refused, and
-- one that is there is not: see https://redis.io/docs/latest/develop/reference/errors/common/oom/ and script.c of Redis.
if found then
	redis.call('DEL', key)
end
local written = redis.pcall('HSET', key, unpack(entry))
if failed(written) then
	return failure(written)
end
redis.call('PEXPIRE', key, ttl)
return {'done', tookOver, string.format('%d', attempts)}
