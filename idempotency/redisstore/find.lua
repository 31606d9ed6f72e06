-- Replies {'done'} if the key is free, or {'held', field, value, ...}.
local now, free = unpack(ARGV)
if isFree(now, free) then
	return {'done'}
end
return refused()
