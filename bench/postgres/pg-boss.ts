import pg from 'pg';
import {
  AT_ONCE,
  CONNECTIONS,
  type Contender,
  KEEP_REPLY,
  load,
  MAKE_REPLIES,
  PROMPT,
  REPLIES_IN_ORDER,
  REPLY,
} from './contender.ts';

interface Package {
  PgBoss: new (options: object) => Boss;
}

interface Boss {
  on(event: 'error', listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: object): Promise<void>;
  createQueue(name: string, options: object): Promise<void>;
  send(name: string, data: object, options: object): Promise<string | null>;
  work(name: string, options: object, handler: (jobs: readonly { data: Job }[]) => Promise<void>): Promise<string>;
}

interface Job {
  readonly conversation: string;
  readonly n: number;
}

const QUEUE = 'turns';

async function started(url: string, works: boolean): Promise<Boss> {
  const { PgBoss } = await load<Package>('pg-boss');
  const boss = new PgBoss({
    connectionString: url,
    max: CONNECTIONS,
    schedule: false,
    supervise: false,
    useListenNotify: works,
  });
  boss.on('error', (error) => {
    throw error;
  });
  await boss.start();
  return boss;
}

/**
 * pg-boss. Its policy `key_strict_fifo` keeps the order in a conversation. A batch has as many jobs as may run at once. The next batch is
 * fetched as soon as a full one is done, and NOTIFY wakes a waiting worker. The replies of a batch are written at once, each by its own
 * statement.
 */
const contender: Contender = {
  async prepare(url) {
    const boss = await started(url, false);
    await boss.createQueue(QUEUE, { policy: 'key_strict_fifo', notify: true });
    await boss.stop({ graceful: true });
    const client = new pg.Client(url);
    await client.connect();
    await client.query(MAKE_REPLIES);
    await client.end();
  },
  async open({ url }) {
    const boss = await started(url, true);
    const replies = new pg.Pool({ connectionString: url, max: CONNECTIONS });
    const how = {
      batchSize: AT_ONCE,
      pollingIntervalSeconds: 0.5,
      burstWhenBatchFull: true,
      notifyPollingIntervalSeconds: 0.5,
    };
    await boss.work(QUEUE, how, async (jobs) => {
      await Promise.all(
        jobs.map(({ data: { conversation, n } }) => replies.query(KEEP_REPLY, [conversation, n, REPLY])),
      );
    });
    return {
      async submit(conversation, n) {
        await boss.send(QUEUE, { conversation, n, prompt: PROMPT }, { singletonKey: conversation });
      },
      async stop() {
        await boss.stop({ graceful: true });
        await replies.end();
      },
    };
  },
  left: "SELECT count(*)::int AS left FROM pgboss.job WHERE name = 'turns' AND state < 'completed'",
  kept: REPLIES_IN_ORDER,
};

export default contender;
