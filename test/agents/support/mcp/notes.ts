// A program that is an MCP server. It appends a line to the file $TRACE for every start and every call. Its tool returns $TOKEN
// reversed, so that a test can tell the answer from the secret. It waits $SLOW_MS before it answers.
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { mcpAnswer } from './answer.ts';

const { TRACE = '', TOKEN = '', SLOW_MS = '0' } = process.env;
appendFileSync(TRACE, 'started\n');
await wait(Number(SLOW_MS));

for await (const line of createInterface({ input: process.stdin })) {
  const answer = mcpAnswer(JSON.parse(line), () => {
    appendFileSync(TRACE, 'called\n');
    return `The note says ${[...TOKEN].reverse().join('')}.`;
  });
  if (answer !== null) process.stdout.write(`${answer}\n`);
}
