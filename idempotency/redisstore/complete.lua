-- Replies {'done'} or {'held', field, value, ...}.
local owner, now, expiry, ttl, data = unpack(ARGV)
if not mine(owner) or expired(now) then
	return refused
end
redis.call('PEXPIRE', key, ttl) -- first, since it needs no memory: see free.lua
redis.call('HSET', key, 'status', 'COMPLETED', 'expiry', expiry)
redis.call('HDEL', key, 'lease', 'attempts', 'data')
if data then
	redis.call('HSET', key, 'data', data)
end
return {'done'}
