// Runs Powertools for the tests. The argument is the folder that it is installed in. Each line of standard input is a
// request in JSON, each line of standard output an answer; {"id", "started": true} says that a function has begun that waits
// to be told how it ends. It ends when standard input does.
const { createRequire } = require('node:module')
const requireThere = createRequire(`${process.argv[1]}/package.json`)
const { makeIdempotent, IdempotencyConfig } = requireThere('@aws-lambda-powertools/idempotency')
const { DynamoDBPersistenceLayer } = requireThere('@aws-lambda-powertools/idempotency/dynamodb')
const { DynamoDBClient } = requireThere('@aws-sdk/client-dynamodb')

console.warn = () => {} // standard error is for what the tests must see
const answer = (a) => process.stdout.write(JSON.stringify(a) + '\n')
const endings = new Map() // of functions that have begun, by the id of their calls
const clients = new Map() // by endpoint

function client({ endpoint, region }) {
  if (!clients.has(endpoint)) {
    const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: sessionToken } = process.env
    const credentials = { accessKeyId: id || 'test', secretAccessKey: secret || 'test', sessionToken }
    clients.set(endpoint, new DynamoDBClient({ endpoint, region, credentials }))
  }
  return clients.get(endpoint)
}

function layer(options) {
  process.env.AWS_LAMBDA_FUNCTION_NAME = options.function // it is read by the constructor
  return new DynamoDBPersistenceLayer({ ...options.layer, tableName: options.table, awsSdkV3Client: client(options) })
}

// The functions that Powertools itself computes its keys with.
function keys({ options, payloads }) {
  const persistence = layer(options)
  persistence.configure({ config: new IdempotencyConfig(options.config), keyPrefix: options.keyPrefix })
  return payloads.map((payload) => {
    const data = JSON.parse(payload)
    return { key: persistence.getHashedIdempotencyKey(data), validation: persistence.getHashedPayload(data) }
  })
}

async function call({ id, options, payload, milliseconds }) {
  const work = () => new Promise((resolve, reject) => {
    endings.set(id, ({ result, failure }) => {
      if (failure) reject(new Error(failure))
      else resolve(result === undefined ? undefined : JSON.parse(result))
    })
    answer({ id, started: true })
  })
  const config = new IdempotencyConfig(options.config)
  if (milliseconds > 0) config.registerLambdaContext({ getRemainingTimeInMillis: () => milliseconds })
  const idempotent = makeIdempotent(work, { persistenceStore: layer(options), config, keyPrefix: options.keyPrefix })
  const result = JSON.stringify(await idempotent(JSON.parse(payload))) // undefined where there is none
  return { result }
}

require('node:readline').createInterface({ input: process.stdin }).on('line', async (line) => {
  const request = JSON.parse(line)
  try {
    switch (request.do) {
      case 'keys': return answer({ id: request.id, keys: keys(request) })
      case 'call': return answer({ id: request.id, ...await call(request) })
      case 'end': return endings.get(request.id)(request)
      default: throw new Error(`request is ${line}, want keys, call or end`)
    }
  } catch (error) {
    answer({ id: request.id, error: { name: error.name, message: `${error.message} ${error.cause ?? ''}`.trim() } })
  }
}).on('close', () => process.exit())
