import { clsx } from 'clsx';
import { CircleCheck, CircleDashed, X } from 'lucide-react';
import { type ReactNode, useEffect, useState } from 'react';
import { promptText } from '../../../src/core/turn/content.ts';
import { replyText } from '../../../src/core/turn/record.ts';
import { hasEnded } from '../../../src/core/turn/turn.ts';
import { useConversation } from '../data/conversation/use-conversation.ts';
import { useVerbs } from '../data/conversation/verbs.ts';
import { usePreference } from '../data/preferences.ts';
import { useMay } from '../data/session.ts';
import { useActions } from '../shell/actions.ts';
import { Button, IconButton } from '../ui/button.tsx';
import { SESSION_ENDED, say, sayError } from '../ui/say.ts';
import { OwnAgent } from './own-agent.tsx';
import { codewordPrompt, inventCodeword, isDemo, QUESTION, type Steps, stepsOf } from './steps.ts';

/** In the demo conversation: shows what Throughline is for, in three steps to try. Each is marked as done by itself. */
export function FirstRun() {
  const key = useConversation(({ conversation }) => conversation?.key ?? null);
  const mayPrompt = useMay('prompt');
  const [hidden, setHidden] = usePreference('first-run.hidden');
  const isHere = isDemo(key) && mayPrompt;
  const show = { id: 'first-run', title: 'Show the first steps', group: 'Help', run: () => setHidden(null) };
  useActions(isHere && hidden !== null ? [show] : []);
  if (!isHere || hidden !== null) return null;
  return (
    <section
      aria-label="First steps"
      className="max-h-[45dvh] shrink-0 overflow-y-auto border-b border-line bg-sunken px-4 py-3"
    >
      <div className="mx-auto max-w-3xl">
        <div className="flex items-start gap-2">
          <p className="min-w-0 flex-1 text-ui">
            <strong className="font-semibold">
              An agent forgets everything when its session is gone. A conversation here does not.
            </strong>{' '}
            <span className="text-muted">
              Throughline stores what was said and restores it into the agent’s next session. The bar below is the
              receipt of such a restore. Try it yourself:
            </span>
          </p>
          <IconButton label="Hide the first steps" small onClick={() => setHidden('yes')}>
            <X size={15} />
          </IconButton>
        </div>
        <ThreeSteps />
      </div>
    </section>
  );
}

function ThreeSteps() {
  const verbs = useVerbs();
  const [word, steps, isBusy] = useSteps();
  const [doing, setDoing] = useState(false);
  const act = async (work: () => Promise<unknown>) => {
    setDoing(true);
    await work().catch(sayError);
    setDoing(false);
  };
  const send = (text: string) => act(() => verbs.submit(text));
  const kill = () =>
    act(async () => {
      await verbs.kill();
      say(SESSION_ENDED, 'good');
    });
  const cannot = doing || isBusy;
  return (
    <>
      <ol className="mt-2 grid gap-x-4 gap-y-2 sm:grid-cols-3">
        <Step n={1} title="Tell it a secret" isDone={steps.told > 0} isNext={steps.told === 0}>
          <Try
            label={`Tell it “${word}”`}
            isOffered={steps.told === 0}
            isOff={cannot}
            onTry={() => send(codewordPrompt(word))}
          />
        </Step>
        <Step n={2} title="Kill its session" isDone={steps.killed} isNext={steps.told > 0 && !steps.killed}>
          <Try label="Kill the live session" isOffered={steps.told > 0 && !steps.killed} isOff={cannot} onTry={kill} />
        </Step>
        <Step n={3} title="Ask for the secret" isDone={steps.asked} isNext={steps.killed && !steps.asked}>
          <Try
            label="Ask which codewords it has seen"
            isOffered={steps.killed && !steps.asked}
            isOff={cannot}
            onTry={() => send(QUESTION)}
          />
        </Step>
      </ol>
      <Outcome steps={steps} word={word} />
    </>
  );
}

/** What to look at now. */
function Outcome({ steps: { told, killed, asked }, word }: { steps: Steps; word: string }) {
  const hint = asked
    ? `It knew ${word}, although the process that was told it is gone. Open the bar above its answer: it shows which turns were carried over, what the new session was told, and how that was proved.`
    : killed
      ? 'The process is gone, and with it everything the agent had in memory. Watch the bar above the next answer.'
      : told > 0
        ? 'It has answered. Now end its process, as a crash, an update or a closed laptop would.'
        : 'You can also type the prompts yourself, below.';
  return (
    <div role="status" className="mt-2 text-ui text-muted">
      <p>{hint}</p>
      {asked && <OwnAgent />}
    </div>
  );
}

function Step(props: { n: number; title: string; isDone: boolean; isNext: boolean; children: ReactNode }) {
  const { n, title, isDone, isNext, children } = props;
  const Icon = isDone ? CircleCheck : CircleDashed;
  return (
    <li aria-current={isNext ? 'step' : undefined} className="space-y-1">
      <p className={clsx('flex items-center gap-1.5 text-ui font-medium', !isDone && !isNext && 'text-faint')}>
        <Icon size={15} aria-hidden className={isDone ? 'text-accent' : 'text-faint'} />
        {n}. {title}
        {isDone && <span className="text-facts font-normal text-accent">done</span>}
      </p>
      {children}
    </li>
  );
}

function Try({
  label,
  isOffered,
  isOff,
  onTry,
}: {
  label: string;
  isOffered: boolean;
  isOff: boolean;
  onTry(): unknown;
}) {
  if (!isOffered) return null;
  return (
    <Button small look="primary" disabled={isOff} onClick={onTry} className="max-w-full">
      <span className="truncate">{label}</span>
    </Button>
  );
}

/** The codeword of this browser, the steps that are done, and whether a turn is open. */
function useSteps(): readonly [string, Steps, boolean] {
  const turns = useConversation((state) => state.turns);
  const hasLive = useConversation(({ sessions }) => sessions.some(({ state }) => state === 'live'));
  const [stored, keepWord] = usePreference('first-run.word');
  const [ended, keepEnded] = usePreference('first-run.gone');
  const [invented] = useState(() => inventCodeword(Math.random));
  const word = stored ?? invented;
  const items = [...turns.values()].sort((a, b) => a.turn.n - b.turn.n);
  const facts = items.map(({ turn: { n, state, prompt }, parts }) => {
    return { n, state, prompt: promptText(prompt), reply: replyText(parts) };
  });
  const steps = stepsOf({ word, turns: facts, hasLive, endedAfter: Number(ended ?? 0) });
  const last = items.at(-1)?.turn.n ?? 0;
  useEffect(() => {
    if (stored === null) keepWord(word);
    // The next prompt opens a new session, so the end of this one is stored.
    if (steps.killed && Number(ended ?? 0) < steps.told) keepEnded(String(last));
  });
  return [word, steps, items.some(({ turn }) => !hasEnded(turn.state))];
}
