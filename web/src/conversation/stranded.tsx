import { Unplug } from 'lucide-react';
import { useConversation } from '../data/conversation/use-conversation.ts';
import { useVerbs } from '../data/conversation/verbs.ts';
import type { Action } from '../shell/actions.ts';
import { Button } from '../ui/button.tsx';
import { Confirm } from '../ui/dialog.tsx';
import { CliLine } from '../ui/notes.tsx';
import { say } from '../ui/say.ts';
import { shellWord } from '../ui/shell-word.ts';
import { nameOf } from '../ui/state.tsx';

/** Why no process runs the conversation, and what can be done. `move`: null if it cannot be moved here. */
export function StrandedNote({ move }: { move: Action | null }) {
  const stranded = useConversation(({ conversation }) => conversation?.stranded ?? null);
  if (stranded === null) return null;
  return (
    <section
      aria-label="Stranded"
      className="flex shrink-0 flex-wrap items-start gap-x-3 gap-y-2 border-b border-line bg-look-soft px-4 py-2 text-ui"
    >
      <Unplug size={16} className="mt-0.5 shrink-0 text-look" aria-hidden />
      <div className="min-w-0 flex-1 basis-64 space-y-1">
        <p className="font-medium wrap-anywhere">{stranded.message}</p>
        <p className="text-muted wrap-anywhere">{stranded.hint}</p>
        {move?.cli !== undefined && <CliLine line={move.cli} />}
      </div>
      {move !== null && (
        <Button small onClick={move.run}>
          {move.title}
        </Button>
      )}
    </section>
  );
}

export function MoveDialog({ onClose }: { onClose(): void }) {
  const { move } = useVerbs();
  const conversation = useConversation((state) => state.conversation);
  const name = conversation === null ? 'This conversation' : nameOf(conversation, 'This conversation');
  const run = async () => {
    await move();
    say('Moved. It continues here with the next prompt.', 'good');
  };
  return (
    <Confirm
      open
      onClose={onClose}
      title="Move the conversation here"
      cli={`throughline move ${shellWord(conversation?.key ?? conversation?.id ?? '')}`}
      label="Move here"
      otherwise="Leave it there"
      look="primary"
      run={run}
    >
      <p>
        <strong className="break-words">{name}</strong> continues on this server, in a new, empty sandbox. What was said
        is restored with the next prompt. Its working files and its directory stay where they were. Move it only if that
        place is gone for good.
      </p>
    </Confirm>
  );
}
