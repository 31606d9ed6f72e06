-- Replies {'done'} or {'held', field, value, ...}.
local owner, now, free, expiry, ttl, fingerprint, data = unpack(ARGV)
if not isFree(now, free) then
	return refused()
end
local entry = {'status', 'COMPLETED', 'owner', owner, 'expiry', expiry}
if fingerprint ~= '' then
	entry[#entry + 1], entry[#entry + 2] = 'fingerprint', fingerprint
end
if data then
	entry[#entry + 1], entry[#entry + 2] = 'data', data
end
local err = replace(entry, ttl)
if err then
	return failure(err)
end
return {'done'}
