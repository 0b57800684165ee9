// An MCP server: every start and every call is a line in $TRACE, and its tool says $TOKEN backwards.
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
