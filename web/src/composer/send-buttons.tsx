import { ArrowUp, Square, Zap } from 'lucide-react';
import { useConversation } from '../data/conversation/use-conversation.ts';
import { useDraft } from '../data/drafts/draft.ts';
import { Button, IconButton } from '../ui/button.tsx';

interface SendButtonsProps {
  readonly of: string;
  readonly isRunning: boolean;
  onSend(now: boolean): Promise<void>;
  onStop(): void;
}

export function SendButtons({ of, isRunning, onSend, onStop }: SendButtonsProps) {
  const { text, attachments, isSending } = useDraft(of);
  const asks = useConversation(({ permissions }) => permissions.length > 0);
  const isEmpty = text.trim() === '' && attachments.length === 0;
  return (
    <div className="ml-auto flex shrink-0 items-center gap-1 [grid-area:send]">
      {isRunning && asks && (
        <IconButton label="Stop the running turn" keys="Escape Escape" small onClick={onStop}>
          <Square size={13} />
        </IconButton>
      )}
      {isRunning && !isEmpty && (
        <IconButton
          label="Stop the running turn, and send this now"
          keys="Mod+Enter"
          small
          disabled={isSending}
          onClick={() => void onSend(true)}
        >
          <Zap size={15} />
        </IconButton>
      )}
      <SendButton
        label={isRunning ? 'Queue' : 'Send'}
        look={asks ? 'plain' : 'primary'}
        disabled={isEmpty || isSending}
      />
    </div>
  );
}

interface SendButtonProps {
  readonly label: string;
  readonly look?: 'plain' | 'primary';
  readonly disabled: boolean;
}

/** On a phone a round button within reach of the thumb. */
export function SendButton({ label, look = 'primary', disabled }: SendButtonProps) {
  return (
    <Button
      type="submit"
      small
      look={look}
      disabled={disabled}
      className="max-md:size-11 max-md:rounded-full max-md:px-0"
    >
      <ArrowUp size={18} aria-hidden className="md:hidden" />
      <span className="max-md:sr-only">{label}</span>
      <kbd
        aria-hidden
        className="rounded-sm border border-current/45 px-1 font-sans text-facts leading-4 font-normal max-md:hidden"
      >
        Enter
      </kbd>
    </Button>
  );
}
