import { type FormEvent, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { useAgents } from '../data/agents.ts';
import { useClient, useMay } from '../data/session.ts';
import { readTasks } from '../data/tasks.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { CliLine, ErrorNote } from '../ui/notes.tsx';
import { shellWord } from '../ui/shell-word.ts';

const FIELD = 'pointer-coarse:min-h-11 mt-1 block w-full rounded-md border border-line bg-raised px-2 py-1.5 text-ui';

/** The fields of the form by name. For empty ones the settings decide. */
interface Fields {
  readonly goal: string;
  readonly gate: string;
  readonly name: string;
  readonly milestone: string;
  readonly agent: string;
  readonly budget: string;
  readonly maxIterations: string;
}

/** Adds one task with the most common options. A plan of several tasks is a file: `throughline task run --file`. */
export function AddTask({ open, onClose }: { open: boolean; onClose(): void }) {
  return (
    <Dialog open={open} onClose={onClose} title="Add a task">
      <TaskForm onClose={onClose} />
    </Dialog>
  );
}

const read = (form: HTMLFormElement) => Object.fromEntries(new FormData(form)) as unknown as Fields;

/** Sends the form. If it is sent again without a change, it is still one task. */
function useAdding(onAdded: () => void) {
  const tl = useClient();
  const [, go] = useLocation();
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const requestId = useRef(crypto.randomUUID());
  const add = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (isSending) return;
    setSending(true);
    try {
      const { tasks } = await tl.tasks.add(planOf(read(event.currentTarget)), { requestId: requestId.current });
      onAdded();
      void readTasks(tl);
      if (tasks[0] !== undefined) go(`/tasks/${tasks[0].id}`);
    } catch (reason) {
      setError(reason);
      setSending(false);
    }
  };
  const changed = () => {
    requestId.current = crypto.randomUUID();
  };
  return { add, changed, error, isSending };
}

function TaskForm({ onClose }: { onClose(): void }) {
  const { add, changed, error, isSending } = useAdding(onClose);
  const [line, setLine] = useState('throughline task run "GOAL"');
  const mayRun = useMay('admin');
  const onInput = (event: FormEvent<HTMLFormElement>) => {
    changed();
    setLine(cliOf(read(event.currentTarget)));
  };
  return (
    <form className="space-y-3 p-4 text-ui" onSubmit={add} onInput={onInput}>
      <label className="block">
        Goal
        <textarea name="goal" required rows={3} className={FIELD} placeholder="What should be true at the end?" />
      </label>
      {/* A gate is a command that runs on the server, so it needs the scope admin. */}
      {mayRun && (
        <label className="block">
          Gate: a command that passes when the goal is reached
          <input name="gate" className={`${FIELD} font-mono`} placeholder="npm test" />
        </label>
      )}
      <div className="grid grid-cols-2 gap-3">
        <Field name="name" label="Name" />
        <Field name="milestone" label="Milestone" />
        <AgentField />
        <Field name="budget" label="Budget" placeholder="2 USD, 50k tokens" />
        <Field name="maxIterations" label="Max iterations" placeholder="10" type="number" />
      </div>
      {error !== null && <ErrorNote error={error} />}
      <CliLine line={line} />
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>Cancel</Button>
        <Button look="primary" type="submit" disabled={isSending}>
          Add
        </Button>
      </div>
    </form>
  );
}

function AgentField() {
  const { agents } = useAgents();
  return (
    <label className="block">
      Agent
      <select name="agent" className={FIELD}>
        <option value="">default</option>
        {agents.map(({ name }) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

interface FieldProps {
  readonly name: keyof Fields;
  readonly label: string;
  readonly placeholder?: string;
  readonly type?: 'text' | 'number';
}

function Field({ name, label, placeholder, type = 'text' }: FieldProps) {
  return (
    <label className="block">
      {label}
      <input name={name} type={type} min={1} className={FIELD} placeholder={placeholder} />
    </label>
  );
}

function planOf({ goal, gate, name, milestone, agent, budget, maxIterations }: Fields) {
  return {
    goal,
    ...(gate && { gate }),
    ...(name && { name }),
    ...(milestone && { milestone }),
    ...(agent && { agent }),
    ...(budget && { budget }),
    ...(maxIterations && { maxIterations: Number(maxIterations) }),
  };
}

/** The equivalent command. */
function cliOf({ goal, gate, name, milestone, agent, budget, maxIterations }: Fields): string {
  const options = { gate, name, milestone, agent, budget, 'max-iterations': maxIterations };
  const words = Object.entries(options).flatMap(([option, value]) =>
    value ? [`--${option} ${shellWord(value)}`] : [],
  );
  return ['throughline task run', shellWord(goal || 'GOAL'), ...words].join(' ');
}
