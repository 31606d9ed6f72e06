-- Replies {'done'} or {'held', field, value, ...}.
local owner, newOwner, now, lease, expiry, ttl = unpack(ARGV)
if not mine(owner) or expired(now) then
	return refused
end
redis.call('PEXPIRE', key, ttl) -- first, since it needs no memory: see free.lua
redis.call('HSET', key, 'owner', newOwner, 'lease', lease, 'expiry', expiry)
return {'done'}
