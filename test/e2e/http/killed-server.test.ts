import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CliHome } from '../cli/process.ts';
import { codewordsIn, WHICH_CODEWORDS } from '../support/conversations.ts';
import { type ServedProcess, serveProcess } from './support/served-process.ts';

// The story of the whole product in one test, with the server as a checkout starts it. It is a part of `npm test`, which leaves out the
// other tests that kill servers.

const CHECKOUT = { program: join(import.meta.dirname, '../../../bin/throughline.js') };

test('a server is killed in the middle of a turn; when it starts again, the conversation goes on with everything that was said', async () => {
  const home = new CliHome();
  try {
    const first = await serveProcess(home, CHECKOUT);
    await first.caller.finished(await prompt(first, 'told', 'The codeword is amber.'));
    const interrupted = await prompt(first, 'interrupted', 'The codeword is birch.\n/say Half of\n/await never');
    for await (const { data } of first.caller.events('/conversations/ticket/events')) {
      if (data.kind === 'turn.update' && data.turnId === interrupted.id) break;
    }
    first.running.kill('SIGKILL');
    expect((await first.running.ended).signal).toBe('SIGKILL');

    const second = await serveProcess(home, CHECKOUT);
    expect((await second.caller.finished(interrupted)).turn).toMatchObject({ state: 'interrupted' });
    const next = await second.caller.finished(await prompt(second, 'next', WHICH_CODEWORDS));
    expect(next.turn).toMatchObject({ state: 'completed' });
    expect(codewordsIn(next.reply)).toEqual(['amber', 'birch']);
    const { turns } = await second.caller.ok('GET', '/conversations/ticket/turns');
    expect(turns.map(({ n, state }: { n: number; state: string }) => [n, state])).toEqual([
      [1, 'completed'],
      [2, 'interrupted'],
      [3, 'completed'],
    ]);
    expect((await prompt(second, 'interrupted', 'The codeword is birch.\n/say Half of\n/await never')).id).toBe(
      interrupted.id,
    );
  } finally {
    await home.remove();
  }
});

/** Submits a prompt. The same request id always gives the same turn. */
async function prompt(server: ServedProcess, requestId: string, text: string) {
  const body = { prompt: text, requestId };
  return (await server.caller.ok('POST', '/conversations/ticket/turns', body)).turn;
}
