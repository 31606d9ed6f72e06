-- Replies {'done', whether another's claim was taken over, attempts} or {'held', field, value, ...}.
local owner, now, free, lease, expiry, ttl, count, fingerprint = unpack(ARGV)
if not isFree(now, free) then
	return refused()
end
local tookOver, attempts = '0', 0
if held.status == 'INPROGRESS' and whole(held.lease) ~= 0 then -- 0: it was released
	tookOver = '1'
end
if not expired(now) then
	attempts = math.max(whole(held.attempts) or 0, 0)
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
local err = replace(entry, ttl)
if err then
	return failure(err)
end
return {'done', tookOver, string.format('%d', attempts)}
