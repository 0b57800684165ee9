// One process of a contender: `node worker.ts NAME OPTIONS`. It prints "ready". At the line "go" it submits its part of the prompts and
// prints "submitted". It works until the line "stop", and prints nothing else.
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

// The process that started it has ended.
process.exit(1);

/** Submits to `AT_ONCE` conversations at once; in each, one prompt after the other. */
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
