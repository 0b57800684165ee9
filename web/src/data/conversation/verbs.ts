import { useMemo } from 'react';
import type { Conversation, Engine, Erased, QueueTurn, Receipt, ThroughlineClient, Turn } from 'throughline/client';
import type { ChainCheck } from '../../../../src/core/event.ts';
import { forgetDraft, NEW, putDraft } from '../drafts/draft.ts';
import { arrange } from '../list.ts';
import { useClient } from '../session.ts';
import { useConversationStore } from './use-conversation.ts';

/** The actions on the open conversation. Each throws the error of the server. */
export interface Verbs {
  rename(title: string): Promise<void>;
  /** Pins it, puts it away, or undoes this. */
  arrange(change: Parameters<typeof arrange>[2]): Promise<void>;
  /** Ends the processes of its live sessions. Returns how many there were. */
  kill(): Promise<number>;
  cancel(turn: string): Promise<void>;
  /** Sends a prompt without a draft. */
  submit(prompt: Parameters<Engine['submit']>[1], options?: Parameters<Engine['submit']>[2]): Promise<void>;
  retry(turn: string): Promise<void>;
  /** `turn`: the last turn of the copy; left out: all turns are copied. */
  fork(turn?: number): Promise<Conversation>;
  /** Forks before a turn, puts the prompt of that turn into the composer, and returns the address. Before the first turn: a new conversation. */
  goBack(turn: Turn): Promise<string>;
  verify(): Promise<ChainCheck>;
  /** Moves it to the place of this server, without its working files. */
  move(): Promise<void>;
  erase(what: { readonly sandbox: boolean; readonly discard: boolean }): Promise<Erased>;
  /** The whole conversation as JSON. */
  exported(): Promise<Blob>;
  warm(agent: string | null): Promise<Receipt | null>;
  /** Edits, moves and drops queued turns. The queue is read again afterwards, also after an error. */
  requeue(turns: readonly QueueTurn[]): Promise<Awaited<ReturnType<Engine['requeue']>>>;
}

export function useVerbs(): Verbs {
  const tl = useClient();
  const store = useConversationStore();
  return useMemo(() => verbsOf(tl, store), [tl, store]);
}

function verbsOf(tl: ThroughlineClient, store: ReturnType<typeof useConversationStore>): Verbs {
  const { engine } = tl;
  const { id } = store;
  return {
    async rename(title) {
      await engine.rename(id, title);
    },
    async arrange(change) {
      await arrange(tl, id, change);
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
        return await engine.requeue(id, turns, { requestId: crypto.randomUUID() });
      } finally {
        await store.readQueue();
      }
    },
  };
}
