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
  runMigrations(options: object): Promise<void>;
  run(
    options: object,
  ): Promise<{ addJob(task: string, payload: Job, spec: object): Promise<unknown>; stop(): Promise<void> }>;
  Logger: new (make: () => () => void) => object;
}

interface Job {
  readonly conversation: string;
  readonly n: number;
  readonly prompt: string;
}

/**
 * graphile-worker. A queue for each conversation keeps the order. Jobs are fetched and completed in batches, as its page on performance
 * recommends. Statements are prepared, which is its default. A job writes its reply itself, because jobs have no results.
 */
const contender: Contender = {
  async prepare(url) {
    const { runMigrations, Logger } = await load<Package>('graphile-worker');
    await runMigrations({ connectionString: url, logger: new Logger(() => () => {}) });
    const client = new pg.Client(url);
    await client.connect();
    await client.query(MAKE_REPLIES);
    await client.end();
  },
  async open({ url }) {
    const { run, Logger } = await load<Package>('graphile-worker');
    type Helpers = { query(text: string, values: unknown[]): Promise<unknown> };
    const runner = await run({
      connectionString: url,
      logger: new Logger(() => () => {}),
      noHandleSignals: true,
      taskList: {
        turn: ({ conversation, n }: Job, { query }: Helpers) => query(KEEP_REPLY, [conversation, n, REPLY]),
      },
      preset: {
        worker: {
          concurrentJobs: AT_ONCE,
          maxPoolSize: CONNECTIONS,
          pollInterval: 100,
          localQueue: { size: AT_ONCE * 2 },
          completeJobBatchDelay: 0,
        },
      },
    });
    return {
      async submit(conversation, n) {
        await runner.addJob('turn', { conversation, n, prompt: PROMPT }, { queueName: conversation });
      },
      stop: () => runner.stop(),
    };
  },
  left: 'SELECT count(*)::int AS left FROM graphile_worker._private_jobs',
  kept: REPLIES_IN_ORDER,
};

export default contender;
