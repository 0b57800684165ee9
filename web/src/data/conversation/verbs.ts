import { useMemo } from 'react';
import type { Conversation, Engine, Erased, QueueTurn, Receipt, ThroughlineClient, Turn } from 'throughline/client';
import type { ChainCheck } from '../../../../src/core/event.ts';
import { forgetDraft, NEW, putDraft } from '../drafts/draft.ts';
import { useClient } from '../session.ts';
import { useConversationStore } from './use-conversation.ts';

/** What somebody can do with the conversation that is shown. Each throws what the server answers. */
export interface Verbs {
  rename(title: string): Promise<void>;
  /** Ends the processes of its live sessions; how many there were. */
  kill(): Promise<number>;
  cancel(turn: string): Promise<void>;
  /** Sends a prompt that is not a draft. */
  submit(prompt: Parameters<Engine['submit']>[1], options?: Parameters<Engine['submit']>[2]): Promise<void>;
  retry(turn: string): Promise<void>;
  /** `turn`: the last one to take along; left out: all. */
  fork(turn?: number): Promise<Conversation>;
  /** A fork before a turn, with the prompt of that turn in its composer; its address. Before the first: a new conversation. */
  goBack(turn: Turn): Promise<string>;
  verify(): Promise<ChainCheck>;
  /** Makes this server's place its place, in which it has no files yet. */
  move(): Promise<void>;
  erase(what: { readonly sandbox: boolean; readonly discard: boolean }): Promise<Erased>;
  /** The whole conversation as JSON. */
  exported(): Promise<Blob>;
  warm(agent: string | null): Promise<Receipt | null>;
  /** Edits, moves and drops queued turns. After a conflict the queue is read again, and then this throws. */
  requeue(turns: readonly QueueTurn[]): Promise<void>;
}

export function useVerbs(): Verbs {
  const tl = useClient();
  const store = useConversationStore();
  return useMemo(() => verbsOf(tl, store), [tl, store]);
}

function verbsOf({ engine }: ThroughlineClient, store: ReturnType<typeof useConversationStore>): Verbs {
  const { id } = store;
  return {
    async rename(title) {
      await engine.rename(id, title);
    },
    kill: () => store.kill(),
    async cancel(turn) {
      await engine.cancel(turn);
    },
    async submit(prompt, options) {
      await engine.submit(id, prompt, { create: false, requestId: crypto.randomUUID(), ...options });
      store.hasSent();
    },
    async retry(turn) {
      await engine.retry(turn, { requestId: crypto.randomUUID() });
      store.hasSent();
    },
    fork: (turn) => engine.fork(id, turn === undefined ? {} : { turn }),
    async goBack({ n, prompt }) {
      const { head } = await engine.conversation(id);
      const before = Math.min(n - 1, head);
      const to = before === 0 ? null : (await engine.fork(id, { turn: before })).id;
      putDraft(to ?? NEW, prompt);
      return to === null ? '/new' : `/c/${to}`;
    },
    verify: () => engine.verify(id),
    async move() {
      try {
        await engine.move(id);
      } finally {
        await store.readConversation();
      }
    },
    async erase(what) {
      const erased = await engine.erase(id, what);
      forgetDraft(id);
      return erased;
    },
    async exported() {
      const json = JSON.stringify(await engine.export(id), null, 2);
      return new Blob([json], { type: 'application/json' });
    },
    warm: (agent) => engine.warm(id, agent === null ? {} : { agent }),
    async requeue(turns) {
      try {
        await engine.requeue(id, turns, { requestId: crypto.randomUUID() });
      } finally {
        await store.readQueue();
      }
    },
  };
}
