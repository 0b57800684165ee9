import type { Facts } from './checks.ts';
import type { World } from './world.ts';

/** What the server shows of one conversation, and what its agent did. The caller adds readers and acknowledgements. */
export async function factsOf(world: World, owner: string, key: string): Promise<Omit<Facts, 'told' | 'acknowledged'>> {
  const caller = world.caller(owner);
  const { conversation, turns, sessions, receipts } = await caller.ok('GET', `/conversations/${key}/view`);
  const numbers = new Map<string, number>(turns.map(({ id, n }: { id: string; n: number }) => [id, n]));
  const events: Facts['events'][number][] = [];
  const texts: string[] = [];
  for await (const { data } of caller.events(`/conversations/${key}/events`)) {
    events.push({ seq: data.seq, kind: data.kind, n: numbers.get(data.turnId) ?? null, epoch: null });
    texts.push(JSON.stringify(data));
    if (data.seq >= conversation.lastSeq) break;
  }
  return {
    ...{ owner, key, events, texts, receipts },
    pending: conversation.open,
    head: conversation.head,
    turns: turns.map((turn: ShownTurn) => ({
      ...{ id: turn.id, n: turn.n, requestId: turn.requestId, state: turn.state },
      failure: turn.failure === null ? null : JSON.stringify(turn.failure),
      record: turn.sent === null ? null : { reply: turn.reply },
      dropped: receipts.findLast(({ turn: n }: { turn: number | null }) => n === turn.n)?.dropped ?? 0,
    })),
    watermarks: sessions.map(({ watermark }: { watermark: number }) => watermark),
    ran: world.ran(owner, key),
    sent: turns.flatMap(({ n, sent }: ShownTurn) => (sent === null ? [] : [{ n, attempt: sent.attempt }])),
  };
}

interface ShownTurn {
  readonly id: string;
  readonly n: number;
  readonly requestId: string | null;
  readonly state: Facts['turns'][number]['state'];
  readonly failure: object | null;
  readonly reply: string;
  readonly sent: { readonly attempt: number } | null;
}
