// Handles SQS events with Powertools for AWS Lambda (TypeScript): each message by a function that makeIdempotent has
// wrapped, so many at once. It speaks as child.go does; see job.go. The argument is a childSpec in JSON.
const fs = require('node:fs')
const readline = require('node:readline')
const { makeIdempotent, IdempotencyConfig } = require('@aws-lambda-powertools/idempotency')
const { DynamoDBPersistenceLayer } = require('@aws-lambda-powertools/idempotency/dynamodb')
const { DynamoDBClient } = require('@aws-sdk/client-dynamodb')

const { Endpoint, Table, Concurrency } = JSON.parse(process.argv[1])
const client = new DynamoDBClient({
  endpoint: Endpoint,
  region: process.env.AWS_REGION || 'us-east-1',
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  requestHandler: { httpAgent: { keepAlive: true, maxSockets: Concurrency } }, // the default is 50
})

const config = new IdempotencyConfig({ eventKeyJmesPath: 'messageId', throwOnNoIdempotencyKey: true })
let handled = 0
let ending
const handle = makeIdempotent(async (record) => {
  JSON.parse(record.body)
  handled++
  if (ending === 'fails') throw new Error('this one fails')
}, { persistenceStore: new DynamoDBPersistenceLayer({ tableName: Table, awsSdkV3Client: client }), config })

async function invoke(payload, time) {
  const event = JSON.parse(payload)
  const deadline = Date.now() + time
  config.registerLambdaContext({ getRemainingTimeInMillis: () => deadline - Date.now() })
  const batchItemFailures = []
  let next = 0
  const worker = async () => {
    while (next < event.Records.length) {
      const record = event.Records[next++]
      try {
        await handle(record)
      } catch {
        batchItemFailures.push({ itemIdentifier: record.messageId })
      }
    }
  }
  await Promise.all(Array.from({ length: Concurrency }, worker))
  return JSON.stringify({ batchItemFailures })
}

function resident() {
  const found = /^VmHWM:\s+(\d+) kB/m.exec(fs.readFileSync('/proc/self/status', 'utf8'))
  return found ? Number(found[1]) * 1024 : 0
}

async function perform(job) {
  if (job.Ending !== 'succeeds' && job.Ending !== 'fails') throw new Error(`Ending is ${job.Ending}, want succeeds or fails`)
  const payloads = fs.readFileSync(job.Events, 'utf8').trimEnd().split('\n')
  ending = job.Ending
  handled = 0
  const answers = []
  global.gc()
  const cpu = process.cpuUsage()
  const start = process.hrtime.bigint()
  for (const payload of payloads) answers.push(await invoke(payload, job.Time / 1e6))
  const took = process.hrtime.bigint() - start
  const used = process.cpuUsage(cpu)
  return {
    Seconds: Number(took) / 1e9,
    CPU: (used.user + used.system) / 1e6,
    Handled: handled,
    Failed: answers.reduce((sum, answer) => sum + JSON.parse(answer).batchItemFailures.length, 0),
    Resident: process.platform === 'linux' ? resident() : 0,
  }
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const usage = await perform(JSON.parse(line)).catch((err) => ({ Error: String(err.stack) }))
    process.stdout.write(JSON.stringify(usage) + '\n')
  }
}
main()
