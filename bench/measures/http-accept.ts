import type { Measure } from '../finding.ts';
import { HttpProcess } from '../support/http-process.ts';

const CONVERSATIONS = 64;
const CONNECTIONS = 128;

/** Prompts sent over HTTP by many clients at once, until each is accepted durably. Server and clients share the machine. */
const measure: Measure = async ({ quick }) => {
  const server = await HttpProcess.start({ chunks: 1, everyMs: 0, running: 0 });
  const ids = await Promise.all(
    Array.from({ length: CONVERSATIONS }, async (_, i) => {
      return JSON.parse((await server.post('/conversations', { key: `c${i}` })).text).id as string;
    }),
  );
  const send = async (count: number) => {
    let next = 0;
    const one = async () => {
      while (next < count) {
        const at = next++;
        const { status, text } = await server.post(`/conversations/${ids[at % CONVERSATIONS]}/turns`, {
          prompt: `Hello ${at}`,
        });
        if (status !== 202) throw new Error(`${status} ${text}`);
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, one));
  };
  await send(quick ? 200 : 4_000);
  const count = quick ? 500 : 20_000;
  const start = performance.now();
  await send(count);
  const seconds = (performance.now() - start) / 1_000;
  await server.close();
  return [
    {
      name: 'turns accepted durably over HTTP',
      value: count / seconds,
      unit: '/s',
      target: { kind: 'must', least: 2_000 },
      note: `${CONNECTIONS} connections, ${CONVERSATIONS} conversations; the clients are on the same machine; the turns wait, none is run meanwhile`,
    },
  ];
};

export default measure;
