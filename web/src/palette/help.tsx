import { type Action, useAllActions } from '../shell/actions.ts';
import { Dialog } from '../ui/dialog.tsx';
import { Keys } from '../ui/keys.tsx';
import { CopyButton } from '../ui/notes.tsx';

/** The actions of the current view, with their keys and the equivalent commands. */
export function Help({ onClose }: { onClose(): void }) {
  return (
    <Dialog open onClose={onClose} title="Keyboard shortcuts and commands">
      <KeyTable />
    </Dialog>
  );
}

function KeyTable() {
  const actions = useAllActions();
  const groups = Map.groupBy(actions, ({ group }) => group);
  return (
    <div className="space-y-4 p-4">
      {[...groups].map(([group, offered]) => (
        <section key={group} aria-label={group}>
          <h3 className="mb-1 text-facts font-medium text-faint">{group}</h3>
          <ul className="divide-y divide-line">
            {offered.map((action) => (
              <Line key={action.id} action={action} />
            ))}
          </ul>
        </section>
      ))}
      <p className="text-ui text-muted">Single keys do nothing while you type. Escape closes an open dialog or menu.</p>
    </div>
  );
}

function Line({ action: { title, keys, cli } }: { action: Action }) {
  return (
    <li className="flex min-h-8 flex-wrap items-center gap-x-3 py-0.5 text-ui">
      <span className="min-w-0 flex-1">{title}</span>
      {cli !== undefined && (
        <span className="flex min-w-0 items-center gap-1 max-sm:order-last max-sm:w-full">
          <code className="truncate font-mono text-facts text-muted">{cli}</code>
          <CopyButton text={cli} label="Copy the command" />
        </span>
      )}
      <span className="flex w-16 justify-end">{keys !== undefined && <Keys keys={keys} />}</span>
    </li>
  );
}
