// Serves kinesalite on the loopback address. The arguments are the package's folder and the port.
const [folder, port] = process.argv.slice(1)
const server = require(folder)({
  createStreamMs: 0, deleteStreamMs: 0, updateStreamMs: 0, // streams change their state at once
  shardLimit: 1000, // of all streams together; the default is 10
})
server.keepAliveTimeout = 0 // by default a connection closes after 5 s, perhaps under a request
server.listen(Number(port), '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${port}`))
