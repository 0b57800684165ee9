import { clsx } from 'clsx';
import { useAgents } from '../data/agents.ts';
import { useConversation, useConversationStore } from '../data/conversation/use-conversation.ts';
import { editDraft, useDraft } from '../data/drafts/draft.ts';
import { useMay } from '../data/session.ts';
import { QuestionHint } from '../permissions/hint.tsx';
import { LossNote } from '../seams/loss.tsx';
import { type Action, useActions } from '../shell/actions.ts';
import { agentName } from '../ui/agent-name.ts';
import { ErrorNote } from '../ui/notes.tsx';
import { AttachButton, Attachments, attach, useDropping } from './attachments.tsx';
import { AgentPicker } from './choices/agent-picker.tsx';
import { ModePicker } from './choices/mode-picker.tsx';
import { OptionsPicker } from './choices/options-picker.tsx';
import { Field, focusComposer } from './field.tsx';
import type { KeyMeaning } from './keys.ts';
import { Now } from './now.tsx';
import { Plan } from './plan.tsx';
import { Queue } from './queue/queue.tsx';
import { SendButtons } from './send-buttons.tsx';
import { useClearAccepted, useSending, useWarmUp, type Warmth } from './sending.ts';
import { Suggestions, useSuggestions } from './suggestions.tsx';
import { useOpenTurns } from './turns.ts';

/** The dock below the timeline: what runs now, the queue, and where the next prompt is written. */
export function Composer() {
  const may = useMay('prompt');
  const { running, queued } = useOpenTurns();
  const driver = useConversation(({ conversation }) => conversation?.driver ?? 'worker');
  const mayWrite = driver === 'worker' && may;
  return (
    <div className="shrink-0 pb-[max(14px,env(safe-area-inset-bottom))] [@media(max-height:300px)]:max-h-[45dvh] [@media(max-height:300px)]:overflow-y-auto">
      <div className="mx-auto max-w-[50rem] px-6 max-md:px-2">
        <QuestionHint />
        <Plan />
        {mayWrite ? (
          <Writing />
        ) : (
          <>
            {running?.state === 'running' && <Now turn={running} onStop={null} />}
            <div className={BOX}>
              <Queue turns={queued} />
              <p className="p-2 text-center text-ui text-muted">
                {driver === 'tracker'
                  ? 'Another program runs this conversation and sends its prompts.'
                  : 'You have read-only access.'}
              </p>
            </div>
          </>
        )}
      </div>
    </div>
  );
}

const BOX =
  'relative rounded-lg border border-control bg-raised has-[#composer:focus]:outline-2 has-[#composer:focus]:-outline-offset-1 has-[#composer:focus]:outline-ink';

/** On a phone, one row with the field between two buttons; the choices are below it while somebody writes. */
const ROWS =
  "grid grid-cols-[auto_minmax(0,1fr)_auto] items-center [grid-template-areas:'attach_field_send'_'bar_bar_bar'] max-md:p-0.5 md:px-1.5 md:pb-1.5 md:[grid-template-areas:'field_field_field'_'attach_bar_send']";

const BAR =
  'flex min-w-0 flex-wrap items-center gap-x-0.5 [grid-area:bar] max-md:hidden max-md:group-focus-within:flex max-md:group-has-data-popup-open:flex';

const FOCUS: readonly Action[] = [
  { id: 'composer.focus', title: 'Write a prompt', group: 'Conversation', keys: 'r', run: focusComposer },
];

function Writing() {
  const store = useConversationStore();
  const { id } = store;
  const { text, attachments, next, isSending, error } = useDraft(id);
  const { running, queued } = useOpenTurns();
  const agent = useCurrentAgent();
  const [warmth, warmUp] = useWarmUp(next.agent ?? agent);
  const { send, stop, isStopAsked, recall } = useSending(agent);
  const suggesting = useSuggestions(text, (changed) => editDraft(id, { text: changed }));
  const dropping = useDropping((files) => void attach(id, files));
  useClearAccepted();
  useActions(FOCUS);
  const onMeaning = (meaning: Exclude<KeyMeaning, null | 'nothing'>) => {
    if (meaning === 'send' || meaning === 'send-now') void send(meaning === 'send-now');
    else if (meaning === 'stop') stop();
    else if (meaning === 'recall') recall();
    else suggesting.onMeaning(meaning);
  };
  return (
    <>
      {running?.state === 'running' && <Now turn={running} onStop={() => stop(true)} />}
      <div className={BOX}>
        <Queue turns={queued} />
        <form
          {...dropping.handlers}
          className={clsx('group relative', dropping.isOver && 'rounded-lg outline-2 outline-ink')}
          onSubmit={(event) => {
            event.preventDefault();
            void send(false);
          }}
        >
          <Suggestions {...suggesting} />
          <Attachments of={id} attachments={attachments} />
          <div className={ROWS}>
            <Field
              text={text}
              placeholder={placeholderFor(next.agent ?? agent, running?.state)}
              suggests={suggesting.all.length > 0}
              activeSuggestion={suggesting.activeId}
              onText={(changed, caret) => {
                suggesting.onCaret(caret);
                if (changed !== text) editDraft(id, { text: changed });
              }}
              onMeaning={onMeaning}
              onFiles={(files) => void attach(id, files)}
              onFocus={() => {
                warmUp();
                store.readAnnounced();
              }}
            />
            <AttachButton of={id} />
            <Bar agent={agent} warmth={warmth} isSending={isSending} isStopAsked={isStopAsked} />
            <SendButtons of={id} isRunning={running !== null} onSend={send} onStop={() => stop(true)} />
          </div>
          {error !== null && <Unsent error={error} />}
        </form>
      </div>
    </>
  );
}

function placeholderFor(agent: string | null, running: string | undefined): string {
  if (running === 'waiting') return 'Write the next prompt';
  const words = agent === null ? 'Say something' : `Say something to ${agentName(agent)}`;
  return running === undefined ? words : `${words} while it works`;
}

function Unsent({ error }: { error: unknown }) {
  return (
    <div className="px-3 pb-2">
      <ErrorNote error={error}>
        <p className="text-muted">The draft is kept. Sending it again cannot create a second turn.</p>
      </ErrorNote>
    </div>
  );
}

function Bar({ agent, ...standing }: StandingProps & { agent: string | null }) {
  return (
    <div className={BAR}>
      <Pickers agent={agent} />
      <Standing {...standing} />
      <LossNote />
    </div>
  );
}

interface StandingProps {
  readonly warmth: Warmth;
  readonly isSending: boolean;
  readonly isStopAsked: boolean;
}

/** Who answers the next prompt, and how. `agent`: who answers it if none is chosen. */
function Pickers({ agent }: { agent: string | null }) {
  const store = useConversationStore();
  const { next } = useDraft(store.id);
  const { agents } = useAgents();
  const announced = useConversation((state) => state.announced);
  const kept = useConversation(({ conversation }) => conversation?.choices) ?? {};
  const isKept = kept.agent === undefined || kept.agent === agent;
  const shared = {
    ...{ next, agent, announced },
    onNext: (changed: typeof next) => editDraft(store.id, { next: changed }),
    onOpen: () => store.readAnnounced(),
  };
  return (
    <>
      <AgentPicker {...shared} agents={agents} model={(isKept && kept.model) || null} />
      <ModePicker {...shared} mode={(isKept && kept.mode) || null} />
      <OptionsPicker {...shared} />
    </>
  );
}

/** What happens to the session and the draft, in few words. */
function Standing({ warmth, isSending, isStopAsked }: StandingProps) {
  const waitsSince = useConversation(({ permissions }) => permissions.at(0)?.askedAt ?? null);
  const [words, title] = isStopAsked
    ? ['Press Esc again to stop the turn', undefined]
    : isSending
      ? ['Sending…', undefined]
      : waitsSince !== null
        ? [`Waits for you since ${clock(waitsSince)}`, undefined]
        : warmth.phase === 'warming'
          ? ['Preparing the session…', undefined]
          : warmth.phase === 'failed'
            ? ['Session not prepared', warmth.why]
            : ['', undefined];
  return (
    <span
      role="status"
      title={title}
      className={clsx(
        'ml-auto min-w-0 truncate px-1 text-facts',
        isStopAsked || waitsSince !== null ? 'text-look' : 'text-faint',
      )}
    >
      {words}
      {title !== undefined && <span className="sr-only">: {title}</span>}
    </span>
  );
}

function clock(at: number): string {
  return new Date(at).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
}

/** The agent of the last turn, which answers the next one unless another is chosen. */
function useCurrentAgent(): string | null {
  const { agents } = useAgents();
  const last = useConversation(({ turns, last }) => turns.get(last)?.turn.agent ?? null);
  const begun = useConversation(({ conversation }) => conversation?.lastAgent ?? conversation?.agent ?? null);
  return last ?? begun ?? agents.find(({ isDefault }) => isDefault)?.name ?? null;
}
