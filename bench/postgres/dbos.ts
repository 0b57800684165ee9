import { AT_ONCE, CONNECTIONS, type Contender, load, PROMPT, REPLY } from './contender.ts';

interface Package {
  DBOS: {
    setConfig(config: object): void;
    registerWorkflow(run: (prompt: string) => Promise<string>, config: object): (prompt: string) => Promise<string>;
    registerQueue(name: string, options: object): Promise<unknown>;
    launch(): Promise<void>;
    shutdown(): Promise<void>;
    startWorkflow(run: (prompt: string) => Promise<string>, params: object): (prompt: string) => Promise<unknown>;
  };
}

const QUEUE = 'turns';
/** A process may register the workflow only once, even if it launches DBOS several times. */
let turn: ((prompt: string) => Promise<string>) | undefined;

async function launched(url: string) {
  const { DBOS } = await load<Package>('@dbos-inc/dbos-sdk');
  DBOS.setConfig({
    ...{
      name: 'bench',
      systemDatabaseUrl: url,
      systemDatabasePoolSize: CONNECTIONS,
      logLevel: 'error',
      runAdminServer: false,
    },
    ...{ applicationVersion: '1', executorID: String(process.pid) },
  });
  turn ??= DBOS.registerWorkflow(async (prompt) => (prompt === '' ? '' : REPLY), { name: 'turn' });
  await DBOS.launch();
  await DBOS.registerQueue(QUEUE, { workerConcurrency: AT_ONCE, partitionConcurrency: 1, minPollingIntervalMs: 50 });
  return { DBOS, turn };
}

/**
 * DBOS. A queue with a partition for each conversation keeps the order. A turn is a workflow without steps: its input is the prompt, its
 * output is the reply, and DBOS stores both exactly once. Queues are polled every 50 ms instead of every second.
 */
const contender: Contender = {
  async prepare(url) {
    const { DBOS } = await launched(url);
    await DBOS.shutdown();
  },
  async open({ url }) {
    const { DBOS, turn } = await launched(url);
    return {
      async submit(conversation, n) {
        const params = {
          workflowID: `${conversation}-${n}`,
          queueName: QUEUE,
          enqueueOptions: { queuePartitionKey: conversation },
        };
        await DBOS.startWorkflow(turn, params)(PROMPT);
      },
      stop: () => DBOS.shutdown(),
    };
  },
  left: "SELECT count(*)::int AS left FROM dbos.workflow_status WHERE status <> 'SUCCESS'",
  kept: 'SELECT count(*)::int AS kept FROM dbos.workflow_output WHERE output IS NOT NULL',
};

export default contender;
