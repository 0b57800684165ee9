import type { Conversation } from 'throughline/client';
import { useLocation } from 'wouter';
import { hasEnded } from '../../../src/core/turn/turn.ts';
import { focusComposer } from '../composer/field.tsx';
import { useOpenTurns } from '../composer/turns.ts';
import { useConversation } from '../data/conversation/use-conversation.ts';
import { useVerbs, type Verbs } from '../data/conversation/verbs.ts';
import { useMay } from '../data/session.ts';
import type { Action } from '../shell/actions.ts';
import { SESSION_ENDED, say, sayError } from '../ui/say.ts';
import { shellWord } from '../ui/shell-word.ts';
import { nameOf } from '../ui/state.tsx';
import { fileName } from './standing.ts';

export type Shown = 'title' | 'erase' | 'verify' | 'move';

/** The actions on the conversation in its current state, with the equivalent commands. */
export function useConversationActions(show: (what: Shown) => void): readonly Action[] {
  const verbs = useVerbs();
  const conversation = useConversation((state) => state.conversation);
  const sessions = useConversation((state) => state.sessions);
  const last = useConversation(({ turns, last }) => turns.get(last)?.turn ?? null);
  const { running } = useOpenTurns();
  const [, go] = useLocation();
  const [mayPrompt, mayAdmin] = [useMay('prompt'), useMay('admin')];
  if (conversation === null) return [];

  const cli = (command: string, rest = '') =>
    `throughline ${command} ${shellWord(conversation.key ?? conversation.id)}${rest}`;
  const action = (id: string, title: string, line: string | null, run: () => void): Action => ({
    id: `conversation.${id}`,
    title,
    group: 'Conversation',
    run,
    ...(line !== null && { cli: line }),
  });
  const hasLive = sessions.some(({ state }) => state === 'live');
  const openBefore = async () => {
    if (last === null) return;
    go(`~${await verbs.goBack(last)}`);
    say(`You are before turn ${last.n} now. Its prompt is in the composer.`, 'good');
  };
  // Like `goBack`: before the first turn there is nothing to fork, so there is no command.
  const before = last === null ? 0 : Math.min(last.n - 1, conversation.head);
  const backLine = before === 0 ? null : cli('fork', ` --turn ${before}`);
  return [
    ...(canMove(conversation) && mayAdmin ? [action('move', 'Move here…', cli('move'), () => show('move'))] : []),
    ...(hasLive && mayPrompt
      ? [action('kill', 'Kill the live session', cli('kill'), () => trying(killed(verbs)))]
      : []),
    ...(running !== null && mayPrompt
      ? [action('cancel', 'Cancel the running turn', cli('cancel'), () => trying(verbs.cancel(running.id)))]
      : []),
    ...(last !== null && hasEnded(last.state) && mayPrompt
      ? [
          action('retry', 'Retry the last turn', cli('retry'), () => trying(verbs.retry(last.id))),
          action('back', 'Go back before the last turn', backLine, () => trying(openBefore())),
        ]
      : []),
    ...(mayPrompt
      ? [
          ...arranging(conversation, action, cli, (what) => trying(verbs.arrange(what))),
          ...(hasLive || !isRunHere(conversation)
            ? []
            : [action('restore', 'Restore the session now', null, () => trying(restored(verbs)))]),
          action('rename', 'Rename', cli('rename', ' TITLE'), () => show('title')),
          action('fork', 'Fork', cli('fork'), () => trying(forked(verbs, go))),
        ]
      : []),
    action('export', 'Export as JSON', cli('export', ' --output FILE'), () =>
      trying(saved(verbs, fileName(nameOf(conversation)))),
    ),
    action('verify', 'Verify the chain of events', cli('verify'), () => show('verify')),
    ...(mayAdmin ? [action('erase', 'Erase…', cli('erase', ' --yes'), () => show('erase'))] : []),
  ];
}

type Arrange = Parameters<Verbs['arrange']>[0];

function arranging(
  { pinned, putAway }: Conversation,
  action: (id: string, title: string, line: string | null, run: () => void) => Action,
  cli: (command: string, rest?: string) => string,
  run: (what: Arrange) => void,
): Action[] {
  const undo = (is: boolean) => (is ? ' --undo' : '');
  return [
    action('pin', pinned ? 'Unpin' : 'Pin', cli('pin', undo(pinned)), () => run({ pinned: !pinned })),
    action('put-away', putAway ? 'Bring back' : 'Put away', cli('put-away', undo(putAway)), () =>
      run({ putAway: !putAway }),
    ),
  ];
}

/** Whether a process runs its turns, or will run the next one. */
function isRunHere({ driver, stranded }: Conversation): boolean {
  return driver === 'worker' && stranded === null;
}

/** Restores the session before the next prompt, and says how. */
async function restored({ warm }: Verbs): Promise<void> {
  const receipt = await warm(null);
  if (receipt === null) say('It is in use, or no slot is free. The next prompt restores its context.');
  else say(`Ready: ${receipt.carried} turns were carried into its session.`, 'good');
}

/** The server moves only conversations of another data home that has no process. */
function canMove({ stranded, driver }: Conversation): boolean {
  return stranded?.reason === 'other_home' && driver === 'worker';
}

function trying(work: Promise<void>): void {
  work.catch(sayError);
}

async function forked({ fork }: Verbs, go: (path: string) => void): Promise<void> {
  const made = await fork();
  go(`~/c/${made.id}`);
  say('Forked. This is a copy of the whole conversation.', 'good');
}

async function killed({ kill }: Verbs): Promise<void> {
  const ended = await kill();
  if (ended === 0) say('There was no live session.');
  else say(SESSION_ENDED, 'good');
  focusComposer();
}

async function saved({ exported }: Verbs, name: string): Promise<void> {
  const url = URL.createObjectURL(await exported());
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
