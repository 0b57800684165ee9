// One process of those that are compared: `node worker.ts NAME OPTIONS`. It says "ready", submits its part of the prompts when it is told "go",
// says "submitted", works on until it is told to stop, and says nothing else.
import { createInterface } from 'node:readline';
import { AT_ONCE, type Contender, type WorkerOptions } from './contender.ts';

export interface Part extends WorkerOptions {
  /** The conversations that this process submits to. */
  readonly conversations: readonly string[];
  readonly turns: number;
}

const [name = '', json = ''] = process.argv.slice(2);
const { conversations, turns, ...options } = JSON.parse(json) as Part;
const { default: contender } = (await import(`./${name}.ts`)) as { default: Contender };
const worker = await contender.open(options);
process.stdout.write('ready\n');

for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'go') {
    await submitAll();
    process.stdout.write('submitted\n');
  } else if (line === 'stop') {
    await worker.stop();
    process.exit(0);
  }
}

// Whoever started it is gone.
process.exit(1);

/** So many conversations at once; in each, one prompt after the other. */
async function submitAll(): Promise<void> {
  const waiting = conversations.values();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const conversation of waiting) {
        for (let n = 1; n <= turns; n += 1) await worker.submit(conversation, n);
      }
    }),
  );
}
