-- Replies {'done'} or {'held', field, value, ...}.
local owner, count, unstarted = unpack(ARGV)
if not mine(owner) then
	return refused
end
if count ~= '1' then
	redis.call('DEL', key)
	return {'done'}
end
local attempts = math.max(whole(held.attempts) or 0, 0)
if unstarted == '1' and attempts > 0 then
	attempts = attempts - 1
end
redis.call('HDEL', key, 'owner', 'fingerprint') -- first, since it needs no memory: see free.lua
redis.call('HSET', key, 'lease', '0', 'attempts', string.format('%d', attempts))
return {'done'}
