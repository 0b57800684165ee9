import { clsx } from 'clsx';
import { SendHorizontal, Square, Zap } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { useAgents } from '../data/agents.ts';
import { useConversation, useConversationStore } from '../data/conversation/use-conversation.ts';
import { useVerbs } from '../data/conversation/verbs.ts';
import { clearIfAccepted, editDraft, sendDraft, useDraft } from '../data/drafts/draft.ts';
import { wordsIn } from '../data/drafts/prompt.ts';
import { describeError } from '../data/errors.ts';
import { useClient, useMay } from '../data/session.ts';
import { QuestionHint } from '../permissions/hint.tsx';
import { LossNote } from '../seams/loss.tsx';
import { type Action, useActions } from '../shell/actions.ts';
import { Button, IconButton } from '../ui/button.tsx';
import { ErrorNote } from '../ui/notes.tsx';
import { sayError } from '../ui/say.ts';
import { AttachButton, Attachments, attach, useDropping } from './attachments.tsx';
import { AgentPicker, OptionsPicker } from './choices.tsx';
import { Field, focusComposer } from './field.tsx';
import type { KeyMeaning } from './keys.ts';
import { Plan } from './plan.tsx';
import { moved, queueOf } from './queue/order.ts';
import { Queue } from './queue/queue.tsx';
import { Suggestions, useSuggestions } from './suggestions.tsx';
import { useOpenTurns } from './turns.ts';

/** Where the next prompt is written. Above it are the open questions, the plan and the queue. */
export function Composer() {
  const may = useMay('prompt');
  const { queued } = useOpenTurns();
  const driver = useConversation(({ conversation }) => conversation?.driver ?? 'worker');
  return (
    <div className="shrink-0 px-3 pt-2 pb-[max(0.75rem,env(safe-area-inset-bottom))]">
      <div className="mx-auto max-w-3xl">
        <QuestionHint />
        <Plan />
        <Queue turns={queued} />
        {driver === 'tracker' && (
          <p className="p-2 text-center text-ui text-muted">
            Another program runs this conversation and sends its prompts.
          </p>
        )}
        {driver === 'worker' && may && <Writing />}
        {driver === 'worker' && !may && (
          <p className="p-2 text-center text-ui text-muted">You have read-only access.</p>
        )}
      </div>
    </div>
  );
}

const FOCUS: readonly Action[] = [
  { id: 'composer.focus', title: 'Write a prompt', group: 'Conversation', keys: 'r', run: focusComposer },
];

function Writing() {
  const { id } = useConversationStore();
  const { text, attachments, next, isSending, error } = useDraft(id);
  const { running } = useOpenTurns();
  const agent = useCurrentAgent();
  const [warmth, warmUp] = useWarmUp(next.agent ?? agent);
  const { send, stop, isStopAsked, recall } = useSending(agent);
  const suggesting = useSuggestions(text, (changed) => editDraft(id, { text: changed }));
  const write = (changed: string, caret: number) => {
    suggesting.onCaret(caret);
    if (changed !== text) editDraft(id, { text: changed });
  };
  const dropping = useDropping((files) => void attach(id, files));
  useClearAccepted();
  useActions(FOCUS);
  const onMeaning = (meaning: Exclude<KeyMeaning, null | 'nothing'>) => {
    if (meaning === 'send') void send(false);
    else if (meaning === 'send-now') void send(true);
    else if (meaning === 'stop') stop();
    else if (meaning === 'recall') recall();
    else suggesting.onMeaning(meaning);
  };
  return (
    <form
      {...dropping.handlers}
      className={clsx(
        'relative rounded-lg border bg-raised',
        dropping.isOver ? 'border-ink' : 'border-control focus-within:border-ink',
      )}
      onSubmit={(event) => {
        event.preventDefault();
        void send(false);
      }}
    >
      <Suggestions {...suggesting} />
      <Attachments of={id} attachments={attachments} />
      <Field
        text={text}
        placeholder={running === null ? 'Write a prompt' : 'Write the next prompt: it will be queued'}
        suggests={suggesting.all.length > 0}
        activeSuggestion={suggesting.activeId}
        onText={write}
        onMeaning={onMeaning}
        onFiles={(files) => void attach(id, files)}
        onFocus={warmUp}
      />
      {error !== null && <Unsent error={error} />}
      <div className="flex items-center gap-1 px-1.5 pb-1.5">
        <AttachButton of={id} />
        <Pickers agent={agent} />
        <Standing warmth={warmth} isSending={isSending} isStopAsked={isStopAsked} />
        <LossNote />
        <SendButtons of={id} isRunning={running !== null} onSend={send} onStop={() => stop(true)} />
      </div>
    </form>
  );
}

function Unsent({ error }: { error: unknown }) {
  return (
    <div className="px-3 pb-1">
      <ErrorNote error={error}>
        <p className="text-muted">The draft is kept. Sending it again cannot create a second turn.</p>
      </ErrorNote>
    </div>
  );
}

/** Who answers the next prompt, and how. `agent`: who answers it if none is chosen. */
function Pickers({ agent }: { agent: string | null }) {
  const store = useConversationStore();
  const { next } = useDraft(store.id);
  const { agents } = useAgents();
  const announced = useConversation((state) => state.announced);
  const onNext = (changed: typeof next) => editDraft(store.id, { next: changed });
  return (
    <>
      <AgentPicker agents={agents} next={next} agent={agent} onNext={onNext} />
      <OptionsPicker
        next={next}
        agent={agent}
        announced={announced}
        onOpen={() => store.readAnnounced()}
        onNext={onNext}
      />
    </>
  );
}

interface SendButtonsProps {
  readonly of: string;
  readonly isRunning: boolean;
  onSend(now: boolean): Promise<void>;
  onStop(): void;
}

function SendButtons({ of, isRunning, onSend, onStop }: SendButtonsProps) {
  const { text, attachments, isSending } = useDraft(of);
  const isEmpty = text.trim() === '' && attachments.length === 0;
  return (
    <div className="ml-auto flex shrink-0 items-center gap-1">
      {isRunning && (
        <IconButton label="Cancel the running turn" keys="Escape Escape" small onClick={onStop}>
          <Square size={14} />
        </IconButton>
      )}
      {isRunning && !isEmpty && (
        <IconButton
          label="Cancel the running turn, and send this now"
          keys="Mod+Enter"
          small
          disabled={isSending}
          onClick={() => void onSend(true)}
        >
          <Zap size={15} />
        </IconButton>
      )}
      <Button
        type="submit"
        small
        look="primary"
        disabled={isEmpty || isSending}
        aria-label={isRunning ? 'Queue' : 'Send'}
      >
        <SendHorizontal size={14} aria-hidden />
        <span className="max-sm:sr-only">{isRunning ? 'Queue' : 'Send'}</span>
      </Button>
    </div>
  );
}

/** What happens to the session and the draft, in few words. */
function Standing({ warmth, isSending, isStopAsked }: { warmth: Warmth; isSending: boolean; isStopAsked: boolean }) {
  const [words, title] = isStopAsked
    ? ['Press Esc again to cancel the turn', undefined]
    : isSending
      ? ['Sending…', undefined]
      : warmth.phase === 'warming'
        ? ['Preparing the session…', undefined]
        : warmth.phase === 'failed'
          ? ['Session not prepared', warmth.why]
          : ['', undefined];
  return (
    <span
      role="status"
      title={title}
      className={clsx('min-w-0 truncate px-1 text-facts', isStopAsked ? 'text-look' : 'text-faint')}
    >
      {words}
      {title !== undefined && <span className="sr-only">: {title}</span>}
    </span>
  );
}

/** How long the second Escape may take. */
const TWICE_MS = 2_000;

function useSending(agent: string | null) {
  const tl = useClient();
  const store = useConversationStore();
  const { cancel, requeue } = useVerbs();
  const { running, queued } = useOpenTurns();
  const [isStopAsked, setStopAsked] = useState(false);
  useEffect(() => {
    if (!isStopAsked) return;
    const timer = setTimeout(() => setStopAsked(false), TWICE_MS);
    return () => clearTimeout(timer);
  }, [isStopAsked]);
  const trying = (work: Promise<void>) => work.catch(sayError);
  const send = async (now: boolean) => {
    const accepted = await sendDraft(tl, store.id, agent);
    if (accepted === null) return;
    // A queued prompt is shown above the composer: the timeline does not have to scroll.
    if (now || running === null) store.hasSent();
    if (!now || running === null) return;
    // The prompt becomes the first in the queue before the running turn is cancelled.
    const ids = [...queued.map(({ id }) => id), accepted.turn.id];
    if (ids.length > 1) await trying(requeue(queueOf(moved(ids, ids.length - 1, 0))));
    await trying(cancel(running.id));
  };
  const stop = (isSure = isStopAsked) => {
    if (running === null) return;
    setStopAsked(!isSure);
    if (isSure) void trying(cancel(running.id));
  };
  const recall = () => {
    const { turns, last } = store.state.getState();
    const prompt = turns.get(last)?.turn.prompt ?? [];
    editDraft(store.id, { text: wordsIn(prompt) });
  };
  return { send, stop, isStopAsked: isStopAsked && running !== null, recall };
}

/** Clears a draft whose turn is stored although this page got no reply: the reply was lost, or the page was closed. */
function useClearAccepted(): void {
  const { id } = useConversationStore();
  const accepted = useConversation(({ turns, last }) => turns.get(last)?.turn.requestId);
  useEffect(() => {
    if (accepted) clearIfAccepted(id, accepted);
  }, [id, accepted]);
}

/** The agent of the last turn, which answers the next one unless another is chosen. */
function useCurrentAgent(): string | null {
  const { agents } = useAgents();
  const last = useConversation(({ turns, last }) => turns.get(last)?.turn.agent ?? null);
  const begun = useConversation(({ conversation }) => conversation?.lastAgent ?? conversation?.agent ?? null);
  return last ?? begun ?? agents.find(({ isDefault }) => isDefault)?.name ?? null;
}

type Warmth =
  | { readonly phase: 'cold' | 'warming' | 'warm' }
  /** Not an error yet: the next prompt tries again, and reports it if it fails too. */
  | { readonly phase: 'failed'; readonly why: string };

/**
 * Restores the session before the prompt is sent, when somebody begins to write: once between two turns. Not after the session was
 * killed on this page: then the next prompt restores it, which shows how that works.
 */
function useWarmUp(agent: string | null): readonly [Warmth, () => void] {
  const { warm } = useVerbs();
  const head = useConversation(({ conversation }) => conversation?.head ?? 0);
  const hasLive = useConversation(({ sessions }) => sessions.some(({ state }) => state === 'live'));
  const may = useConversation(({ conversation, isKilled }) => conversation?.open === 0 && !isKilled && !hasLive);
  const [warmth, setWarmth] = useState<Warmth>({ phase: 'cold' });
  const asked = useRef('');
  useEffect(() => {
    // If its process ends before the next turn, the session may be warmed up again.
    if (!hasLive) return;
    asked.current = '';
    setWarmth({ phase: 'cold' });
  }, [hasLive]);
  const begin = () => {
    const occasion = `${head} ${agent}`;
    if (!may || asked.current === occasion) return;
    asked.current = occasion;
    setWarmth({ phase: 'warming' });
    warm(agent).then(
      (receipt) => setWarmth({ phase: receipt === null ? 'cold' : 'warm' }),
      (error) => setWarmth({ phase: 'failed', why: describeError(error).message }),
    );
  };
  return [hasLive ? { phase: 'warm' } : warmth, begin];
}
