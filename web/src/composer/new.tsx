import { clsx } from 'clsx';
import { type ReactNode, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { useAgents } from '../data/agents.ts';
import { useAnnouncedBy } from '../data/conversation/announced-by.ts';
import { type Beginning, createConversation } from '../data/conversation/create.ts';
import { editDraft, NEW, sendDraft, useDraft } from '../data/drafts/draft.ts';
import { useClient, useMay } from '../data/session.ts';
import { Button } from '../ui/button.tsx';
import { Choice } from '../ui/dialog.tsx';
import { CliLine, Empty, ErrorNote } from '../ui/notes.tsx';
import { shellWord } from '../ui/shell-word.ts';
import { AttachButton, Attachments, attach, useDropping } from './attachments.tsx';
import { AgentPicker } from './choices/agent-picker.tsx';
import { ModePicker } from './choices/mode-picker.tsx';
import { OptionsPicker } from './choices/options-picker.tsx';
import { Field } from './field.tsx';

/** `/new`: the first prompt creates the conversation. */
export function NewConversation() {
  const may = useMay('prompt');
  if (!may) return <Empty title="You have read-only access." />;
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <div className="mx-auto max-w-2xl space-y-4 px-4 py-10">
        <h1 className="text-seam font-semibold">New conversation</h1>
        <BeginningForm />
      </div>
    </div>
  );
}

const NOTHING: Beginning = { title: '', key: '', cwd: '', worktree: false };

function BeginningForm() {
  const tl = useClient();
  const [, go] = useLocation();
  const { agents, error: agentsError } = useAgents();
  const { text, attachments, next, isSending, error } = useDraft(NEW);
  const [from, setFrom] = useState(NOTHING);
  const made = useRef<string | null>(null);
  const agent = agents.find(({ isDefault }) => isDefault)?.name ?? null;
  const [announced, readAnnounced] = useAnnouncedBy(next.agent ?? agent);
  const isEmpty = text.trim() === '' && attachments.length === 0;
  const onNext = (changed: typeof next) => editDraft(NEW, { next: changed });
  const choices = { next, agent, announced, onNext, onOpen: readAnnounced };
  const change = (field: Partial<Beginning>) => {
    made.current = null;
    setFrom({ ...from, ...field });
  };
  const send = async () => {
    // A second try after a failure uses the conversation that the first one created.
    const to = async () => {
      made.current ??= await createConversation(tl, from, next.agent ?? agent);
      return made.current;
    };
    const accepted = await sendDraft(tl, NEW, agent, to);
    if (accepted !== null) go(`/c/${accepted.turn.conversationId}`);
  };
  return (
    <form
      className="space-y-3"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <DropBox>
        <Attachments of={NEW} attachments={attachments} />
        <Field
          text={text}
          placeholder="Write the first prompt"
          suggests={false}
          activeSuggestion={null}
          onText={(changed) => changed !== text && editDraft(NEW, { text: changed })}
          onMeaning={(meaning) => (meaning === 'send' || meaning === 'send-now') && void send()}
          onFiles={(files) => void attach(NEW, files)}
        />
        <div className="flex items-center gap-1 px-1.5 pb-1.5">
          <AttachButton of={NEW} />
          <AgentPicker {...choices} agents={agents} model={null} />
          <ModePicker {...choices} mode={null} />
          <OptionsPicker {...choices} />
          <Button type="submit" small look="primary" className="ml-auto" disabled={isEmpty || isSending}>
            Send
          </Button>
        </div>
      </DropBox>
      {error !== null && <ErrorNote error={error} />}
      {agentsError !== null && <ErrorNote error={agentsError} cli="throughline agents" />}
      <Details from={from} onChange={change} />
      <CliLine line={cliLine(from, next.agent ?? agent, text)} />
    </form>
  );
}

/** The box of the prompt, onto which files can be dropped. */
function DropBox({ children }: { children: ReactNode }) {
  const { isOver, handlers } = useDropping((files) => void attach(NEW, files));
  const border = isOver ? 'border-ink' : 'border-control focus-within:border-ink';
  return (
    <div {...handlers} className={clsx('rounded-lg border bg-raised', border)}>
      {children}
    </div>
  );
}

function Details({
  from: { title, key, cwd, worktree },
  onChange,
}: {
  from: Beginning;
  onChange(field: Partial<Beginning>): void;
}) {
  const mayName = useMay('admin');
  const field = (name: 'title' | 'key' | 'cwd', label: string, value: string, about: string) => (
    <div className="grid gap-x-3 gap-y-0.5 text-ui sm:grid-cols-[6rem_1fr]">
      <label htmlFor={`new-${name}`} className="text-muted sm:pt-1.5">
        {label}
      </label>
      <div>
        <input
          id={`new-${name}`}
          aria-describedby={`new-${name}-about`}
          className="h-8 w-full rounded-md border border-line bg-raised px-2 pointer-coarse:h-11"
          value={value}
          autoComplete="off"
          onChange={({ target }) => onChange({ [name]: target.value })}
        />
        <p id={`new-${name}-about`} className="text-facts text-faint">
          {about}
        </p>
      </div>
    </div>
  );
  return (
    <div className="space-y-2">
      {field('title', 'Title', title, 'Optional. Default: the first line of the prompt.')}
      {field('key', 'Key', key, 'Optional. Its name on the command line and in programs.')}
      {mayName &&
        field(
          'cwd',
          'Directory',
          cwd,
          'Optional. Where the agent works on the server’s machine. Default: a new, empty directory.',
        )}
      {mayName && cwd.trim() !== '' && (
        <div className="text-ui sm:ml-27">
          <Choice
            label="In a separate git worktree"
            value={worktree}
            onChange={(changed) => onChange({ worktree: changed })}
          />
        </div>
      )}
    </div>
  );
}

/** The equivalent command. */
function cliLine({ title, key, cwd, worktree }: Beginning, agent: string | null, text: string): string {
  const words = [shellWord(key || 'KEY'), shellWord(text.trim() === '' ? 'PROMPT' : text.trim())];
  if (agent !== null) words.push('--agent', shellWord(agent));
  if (title.trim() !== '') words.push('--title', shellWord(title.trim()));
  if (cwd.trim() !== '') words.push('--cwd', shellWord(cwd.trim()));
  if (cwd.trim() !== '' && worktree) words.push('--worktree');
  return `throughline send ${words.join(' ')}`;
}
