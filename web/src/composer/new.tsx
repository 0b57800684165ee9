import { clsx } from 'clsx';
import { SlidersHorizontal } from 'lucide-react';
import { type KeyboardEvent, useEffect, useMemo, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { readAgents, useAgents } from '../data/agents.ts';
import { announcedBy } from '../data/conversation/announced.ts';
import type { NextTurn } from '../data/drafts/choices.ts';
import { editDraft, NEW, useDraft } from '../data/drafts/draft.ts';
import { useClient, useMay } from '../data/session.ts';
import { agentName } from '../ui/agent-name.ts';
import { Button } from '../ui/button.tsx';
import { composerField } from '../ui/focus.ts';
import { Keys } from '../ui/keys.tsx';
import { Empty, ErrorNote } from '../ui/notes.tsx';
import { AttachButton, Attachments, attach, useDropping } from './attachments.tsx';
import { ModePicker } from './choices/mode-picker.tsx';
import { Field } from './field.tsx';
import { AgentChooser } from './new/agents.tsx';
import { Alike } from './new/alike.tsx';
import { ProjectChooser } from './new/chooser.tsx';
import { More, Taken, useTaken } from './new/more.tsx';
import { type Begin, cliLine, useBegin } from './new/use-begin.ts';
import { type Place, usePlace } from './new/use-place.ts';
import { Where } from './new/where.tsx';
import { SendButton } from './send-buttons.tsx';

/** `/new`: the first prompt creates the conversation. The cursor is in its field at once; everything else is optional. */
export function NewConversation() {
  const may = useMay('prompt');
  if (!may) return <Empty title="You have read-only access." />;
  return (
    <>
      <header className="flex min-h-13 shrink-0 items-center justify-between gap-2.5 pr-3 pl-6 max-md:pl-3">
        <h1 className="text-said text-muted">New conversation</h1>
        <Link
          href="/"
          className="flex min-h-7 items-center gap-1.5 rounded-md px-2.5 text-ui text-muted hover:bg-hover pointer-coarse:min-h-11"
        >
          Close
          <span aria-hidden className="pointer-coarse:hidden">
            <Keys keys="Escape" />
          </span>
        </Link>
      </header>
      <div className="min-h-0 flex-1 overflow-y-auto">
        <div className="mx-auto max-w-[54.25rem] px-6 pt-11 pb-8 max-md:px-2 max-md:pt-2">
          <Beginning />
        </div>
      </div>
    </>
  );
}

function Beginning() {
  const [, go] = useLocation();
  const { text } = useDraft(NEW);
  const { agents, ...choices } = useChoices();
  const { agent, next } = choices;
  const [named, setNamed] = useState({ title: '', key: '' });
  const [isMore, setMore] = useState(false);
  const place = usePlace();
  const from = { ...named, cwd: place.cwd ?? '', worktree: place.worktree };
  const [taken, lookUp] = useTaken(named.key);
  const begin = useBegin(from, agent, lookUp);
  useEffect(() => composerField()?.focus(), []);
  const onKey = (event: KeyboardEvent) => {
    // React passes on the keys of popups that were opened here, too.
    const isHere = event.target instanceof Node && event.currentTarget.contains(event.target);
    if (!isHere || event.defaultPrevented || event.nativeEvent.isComposing) return;
    if (event.key === 'Escape') go('/');
    else if (!chooseByKey(event, place)) return;
    event.preventDefault();
  };
  return (
    <form
      onKeyDown={onKey}
      onSubmit={(event) => {
        event.preventDefault();
        void begin.send();
      }}
    >
      <PromptBox agent={next.agent ?? agent} begin={begin} onClose={() => go('/')}>
        <ModePicker {...choices} mode={null} />
        <span className="flex-1" />
        <Button small look="quiet" aria-expanded={isMore} onClick={() => setMore(!isMore)}>
          <SlidersHorizontal size={14} aria-hidden />
          More
        </Button>
      </PromptBox>
      <Errors />
      {!isMore && taken !== null && <Taken by={taken} />}
      {isMore && (
        <More
          from={from}
          choices={choices}
          taken={taken}
          cli={cliLine(from, next.agent ?? agent, text)}
          onChange={(field) => setNamed({ ...named, ...field })}
        />
      )}
      <Where place={place} />
      <div className={clsx('mt-5 grid items-start gap-8', place.mayChoose && 'lg:grid-cols-[minmax(0,1fr)_21.25rem]')}>
        {place.mayChoose && <ProjectChooser place={place} />}
        <div className="min-w-0">
          <AgentChooser {...choices} agents={agents} />
          <Alike text={text} />
        </div>
      </div>
    </form>
  );
}

function Errors() {
  const { error } = useDraft(NEW);
  const { error: agentsError } = useAgents();
  return (
    <>
      {error !== null && <ErrorNote error={error} />}
      {agentsError !== null && <ErrorNote error={agentsError} cli="throughline agents" />}
    </>
  );
}

/** Who answers and how, and what there is to choose from. `agent`: who answers if none is chosen. */
function useChoices() {
  const tl = useClient();
  const { agents } = useAgents();
  const { next } = useDraft(NEW);
  const agent = agents.find(({ isDefault }) => isDefault)?.name ?? null;
  const updates = agents.find(({ name }) => name === (next.agent ?? agent))?.announced;
  const announced = useMemo(() => announcedBy(updates ?? []), [updates]);
  // An agent may have announced its models since they were read.
  useEffect(() => void readAgents(tl), [tl]);
  return { agents, agent, next, announced, onNext };
}

const onNext = (next: NextTurn) => editDraft(NEW, { next });

/** Alt and a digit chooses the project with this number, also while somebody writes. */
function chooseByKey({ altKey, ctrlKey, metaKey, code }: KeyboardEvent, { projects, choose }: Place): boolean {
  const digit = altKey && !ctrlKey && !metaKey ? /^Digit([1-9])$/.exec(code)?.[1] : undefined;
  const project = digit === undefined ? undefined : projects[Number(digit) - 1];
  if (project !== undefined) choose(project.path);
  return digit !== undefined;
}

interface PromptBoxProps {
  readonly agent: string | null;
  readonly begin: Begin;
  readonly children: React.ReactNode;
  onClose(): void;
}

/** The box of the prompt, onto which files can be dropped. */
function PromptBox({ agent, begin, children, onClose }: PromptBoxProps) {
  const { text, attachments, isSending } = useDraft(NEW);
  const { isOver, handlers } = useDropping((files) => void attach(NEW, files));
  const isEmpty = text.trim() === '' && attachments.length === 0;
  return (
    <div
      {...handlers}
      className={clsx(
        'rounded-lg border border-control bg-raised has-[#composer:focus]:outline-2 has-[#composer:focus]:-outline-offset-1 has-[#composer:focus]:outline-ink',
        isOver && 'outline-2 outline-ink',
      )}
    >
      <Attachments of={NEW} attachments={attachments} />
      <div className="px-1.5 max-md:px-0.5">
        <Field
          text={text}
          placeholder={agent === null ? 'What should be done?' : `What should ${agentName(agent)} do?`}
          suggests={false}
          activeSuggestion={null}
          className="min-h-27 max-md:min-h-21"
          onText={(changed) => changed !== text && editDraft(NEW, { text: changed })}
          onMeaning={(meaning) => {
            if (meaning === 'send' || meaning === 'send-now') void begin.send();
            else if (meaning === 'stop') onClose();
          }}
          onFiles={(files) => void attach(NEW, files)}
        />
      </div>
      <div className="flex flex-wrap items-center gap-0.5 px-1.5 pb-1.5">
        <AttachButton of={NEW} />
        {children}
        <SendButton label="Start" disabled={isEmpty || isSending} />
      </div>
    </div>
  );
}
