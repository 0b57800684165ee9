import { clsx } from 'clsx';
import { Check, Minus, TriangleAlert, X } from 'lucide-react';
import { type ReactNode, Suspense, useRef, useState } from 'react';
import type { Permission, PermissionOption } from 'throughline/client';
import { writtenOut } from '../../../src/core/input/marks.ts';
import { warningOf } from '../../../src/core/input/warning.ts';
import { answerPermission } from '../data/permissions.ts';
import { useClient, useMay, useMe } from '../data/session.ts';
import { agentName } from '../ui/agent-name.ts';
import { Button } from '../ui/button.tsx';
import { Keys } from '../ui/keys.tsx';
import { lazily } from '../ui/lazily.tsx';
import { ErrorNote } from '../ui/notes.tsx';
import { SafeText } from '../ui/safe-text.tsx';
import { shellWord } from '../ui/shell-word.ts';
import { At } from '../ui/time.tsx';
import { type Asked, askedOf, headlineOf, markableTexts, mayAnswer, type Press } from './asked.ts';
import { decisionOf } from './decision.ts';
import { useIsReady, useLetters, useShownAt } from './guard.ts';

const AskedDiffs = lazily(async () => (await import('./diffs.tsx')).AskedDiffs, NewTexts);

interface PermissionCardProps {
  readonly permission: Permission;
  /** Who asks. */
  readonly agent: string;
  /** Where it would be done. */
  readonly where?: ReactNode;
  /** `1 of 2`; left out: it is the only one. */
  readonly place?: string | null;
  /** When the content around it last moved, in the time of `performance.now()`. A card that moves is inert again. */
  readonly movedAt?: number;
  /** `isLate`: another answer had counted already. */
  onAnswered?(answered: Permission, isLate: boolean): void;
}

/**
 * An open question of an agent. It ignores everything in its first half second, and held keys always: somebody who types or clicks somewhere
 * else must not approve anything by accident.
 */
export function PermissionCard(props: PermissionCardProps) {
  const { permission, agent, where, place = null, movedAt = 0, onAnswered } = props;
  const tl = useClient();
  const may = useMay('approve');
  const [mine, setMine] = useState<Permission | null>(null);
  const [sending, setSending] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const shownAt = useShownAt(movedAt);
  const answer = async ({ optionId }: PermissionOption) => {
    setSending(optionId);
    setError(null);
    try {
      const answered = await answerPermission(tl, permission.id, optionId);
      setMine(answered);
      onAnswered?.(answered, answered.optionId !== optionId);
    } catch (failure) {
      setError(failure);
    } finally {
      setSending(null);
    }
  };
  const asked = askedOf(permission);
  const warning = warningOf([permission.title, ...markableTexts(asked)]);
  const headline = headlineOf(asked, agentName(agent));
  const ended = permission.state === 'open' ? mine : permission;
  if (ended !== null) return <DecisionLine permission={ended} />;
  return (
    <section
      aria-label={`Permission: ${writtenOut(permission.title, 'code')}`}
      data-question={permission.id}
      className="overflow-hidden rounded-lg border-[1.5px] border-look-fill bg-raised text-ui"
    >
      <Head words={headline ?? permission.title} isOwn={headline !== null} where={where} place={place} />
      <div className="space-y-2 px-3.5 pt-2.5 pb-3">
        <AskedView asked={asked} title={headline === null ? null : permission.title} />
        {warning !== null && (
          <p className="flex gap-2">
            <TriangleAlert size={16} className="mt-0.5 shrink-0 text-look" aria-hidden />
            <span className="min-w-0 wrap-anywhere">{warning}</span>
          </p>
        )}
      </div>
      {may ? (
        <OptionRow
          {...{ permission, shownAt, sending }}
          hasHeadline={headline !== null}
          isMarked={warning !== null}
          onAnswer={answer}
        />
      ) : (
        <p className="px-3.5 pb-3 text-muted">You may not answer this question: that needs the scope approve.</p>
      )}
      {error !== null && (
        <div className="px-3.5 pb-3">
          <ErrorNote error={error} cli={`throughline answer ${shellWord(permission.id)} OPTION`} />
        </div>
      )}
    </section>
  );
}

/** `isOwn`: the words are ours, and not the agent's. */
function Head({
  words,
  isOwn,
  where,
  place,
}: {
  words: string;
  isOwn: boolean;
  where: ReactNode;
  place: string | null;
}) {
  return (
    <>
      <header className="flex flex-wrap items-center gap-x-2 gap-y-0.5 border-b border-look-line bg-look-soft px-3.5 py-1.5">
        <NeedsGlyph />
        <h3 className="min-w-0 flex-1 basis-56 text-said font-semibold wrap-anywhere">
          {isOwn ? words : <SafeText text={words} as="code" />}
        </h3>
        <span className="flex flex-wrap items-center gap-x-2 text-facts text-muted tabular-nums max-sm:w-full max-sm:pl-5.5">
          {where}
          {place}
        </span>
      </header>
      <p role="alert" className="sr-only">
        {isOwn ? words : writtenOut(words, 'code')}
      </p>
    </>
  );
}

/** The shape of everything that waits for a person. */
function NeedsGlyph() {
  return (
    <svg viewBox="0 0 14 14" width="14" height="14" className="shrink-0" aria-hidden>
      <rect width="14" height="14" rx="4" className="fill-look-fill forced-colors:fill-[CanvasText]" />
      <path
        d="M7 3.4v4.2M7 10.5v.01"
        fill="none"
        strokeWidth="2"
        strokeLinecap="round"
        className="stroke-on-look forced-colors:stroke-[Canvas]"
      />
    </svg>
  );
}

interface OptionRowProps {
  readonly permission: Permission;
  readonly shownAt: number;
  readonly sending: string | null;
  readonly hasHeadline: boolean;
  /** Characters in it are not what they look like. */
  readonly isMarked: boolean;
  onAnswer(option: PermissionOption): void;
}

/** Refusing comes first, allowing it once last, what counts for longer between them. */
function OptionRow({ permission, shownAt, sending, hasHeadline, isMarked, onAnswer }: OptionRowProps) {
  const { options } = permission;
  const press = useRef<Press | null>(null);
  const row = useRef<HTMLElement>(null);
  const isReady = useIsReady(shownAt);
  const pressed = (repeats: boolean) => {
    press.current = { at: performance.now(), repeats };
  };
  const answer = (option: PermissionOption) => {
    const may = mayAnswer(shownAt, press.current, performance.now());
    press.current = null;
    if (may && sending === null) onAnswer(option);
  };
  // Whoever cannot see what it is may allow it once, and not for good.
  const offered = options.filter(({ kind }) => !isMarked || kind !== 'allow_always');
  const { refusing, lasting, once } = inOrder(offered);
  const [refuse, allow] = [refusing[0], once.at(-1)];
  const letters = { r: refuse && (() => answer(refuse)), a: allow && (() => answer(allow)) };
  const isTyped = useLetters(row, letters, () => pressed(false));
  const button = (option: PermissionOption) => (
    <Button
      key={option.optionId}
      look={option === allow && !isMarked ? 'primary' : 'plain'}
      title={option.name}
      data-refuse={option === refuse ? '' : undefined}
      aria-keyshortcuts={option === refuse ? 'R' : option === allow ? 'A' : undefined}
      aria-disabled={!isReady || sending !== null}
      className={clsx(
        'h-auto min-h-7 max-w-full shrink py-1 whitespace-normal transition-opacity',
        // On a phone: no and yes beside each other, the rest below them.
        option === refuse || option === allow ? 'max-sm:flex-1' : 'max-sm:order-1 max-sm:w-full',
        (!isReady || sending !== null) && 'opacity-50',
      )}
      onPointerDown={() => pressed(false)}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        const isMeant = !event.repeat && !isTyped();
        if (!isMeant) event.preventDefault();
        pressed(!isMeant);
      }}
      onClick={() => answer(option)}
    >
      <SafeText text={hasHeadline ? wordsOf(option, offered) : option.name} as="words" />
      {option === refuse && <Letter keys="R" />}
      {option === allow && <Letter keys="A" />}
    </Button>
  );
  return (
    <footer ref={row} className="flex flex-wrap items-center gap-2 px-2.5 pb-2.5 pl-3.5">
      {refusing.map(button)}
      <span className="min-w-0 flex-1 max-sm:hidden" />
      {isMarked && offered.length < options.length && (
        <span className="text-facts text-muted max-sm:-order-1 max-sm:w-full">With marked characters only once</span>
      )}
      {lasting.map(button)}
      {once.map(button)}
      {options.length === 0 && <p className="text-muted">The agent offers no options. Stop the turn to go on.</p>}
    </footer>
  );
}

function Letter({ keys }: { keys: string }) {
  return (
    <span aria-hidden className="pointer-coarse:hidden">
      <Keys keys={keys} />
    </span>
  );
}

function inOrder(options: readonly PermissionOption[]) {
  const isRefusing = ({ kind }: PermissionOption) => kind.startsWith('reject');
  const refusing = options.filter(isRefusing).sort((a, b) => b.kind.localeCompare(a.kind));
  const once = options.filter(({ kind }) => kind === 'allow_once');
  return { refusing, once, lasting: options.filter((option) => !refusing.includes(option) && !once.includes(option)) };
}

/** Plain words for the plain yes and no. Where the agent offers several, or for longer, only its own names tell them apart. */
function wordsOf({ kind, name }: PermissionOption, options: readonly PermissionOption[]): string {
  const isOnlyOne = options.filter((option) => option.kind === kind).length === 1;
  if (!isOnlyOne || kind.endsWith('always')) return name;
  return kind === 'allow_once' ? 'Allow once' : 'Refuse';
}

/** `title`: the agent's own words, where the card has others; null: they are the headline. */
function AskedView({ asked, title }: { asked: Asked; title: string | null }) {
  const { tool, kind, targets, command, diffs, texts, input } = asked;
  // The headline says what the tool and its kind say.
  const what = title !== null ? '' : [...new Set([tool, kind])].filter((word) => word !== null).join(' · ');
  const isSaid = title === null || isName(title) || title.replaceAll('`', '') === command || targets.includes(title);
  return (
    <>
      {!isSaid && (
        <p className="wrap-anywhere">
          <SafeText text={title} as="code" />
        </p>
      )}
      {command !== null && <Literal text={command} label="Command" />}
      {diffs.length > 0 && (
        <Suspense fallback={<NewTexts diffs={diffs} />}>
          <AskedDiffs diffs={diffs} />
        </Suspense>
      )}
      {(what !== '' || targets.length > 0) && (
        <p className="text-facts text-muted wrap-anywhere">
          <SafeText text={what} as="code" />
          {targets.map((target) => (
            <code key={target} className="ml-2 font-mono text-ink">
              <SafeText text={target} as="code" />
            </code>
          ))}
        </p>
      )}
      {texts.map((text) => (
        <p key={text} className="whitespace-pre-wrap wrap-anywhere">
          <SafeText text={text} as="code" />
        </p>
      ))}
      {input !== null && <Literal text={input} label="Input" />}
    </>
  );
}

/** Only the name of a tool: `Bash`, `mcp__files__write`. */
const isName = (title: string) => /^[\w.-]+$/.test(title);

/** The new content of the files, until the differences can be shown. */
function NewTexts({ diffs }: Pick<Asked, 'diffs'>) {
  return diffs.map(({ path, newText }, index) => <Literal key={String(index)} text={newText} label={path} />);
}

/** All of it: what somebody approves is never cut, and never hidden at a side. */
function Literal({ text, label }: { text: string; label: string }) {
  return (
    <section
      aria-label={label}
      className="rounded-md border border-line bg-sunken px-3 py-1.5 font-mono text-ui/6 whitespace-pre-wrap wrap-anywhere"
    >
      <SafeText text={text} as="code" />
    </section>
  );
}

const ENDS = { allowed: Check, refused: X, unanswered: Minus };

/** How a question ended: a quiet line of its turn. */
export function DecisionLine({ permission, isLate = false }: { permission: Permission; isLate?: boolean }) {
  const { owner } = useMe();
  const decision = decisionOf(permission, owner);
  if (decision === null) return null;
  const { what, isCode, doing, words, kind, from } = decision;
  const Icon = ENDS[kind];
  return (
    <p className="flex min-h-7 items-start gap-2 py-1 text-ui text-muted" title={permission.title}>
      <Icon size={14} className="mt-[3px] shrink-0" aria-hidden />
      <span className="line-clamp-3 min-w-0 wrap-anywhere">
        {doing !== '' && `${doing} `}
        {isCode ? (
          <code className="font-mono text-facts text-ink">
            <SafeText text={what} as="code" />
          </code>
        ) : (
          <span className="text-ink">
            “<SafeText text={what} as="code" />”
          </span>
        )}{' '}
        {words}
        {permission.endedAt !== null && (
          <>
            , <At at={permission.endedAt} />
          </>
        )}
        {from !== null && `, ${from}`}
        {isLate && '. Your answer came later and does not count'}
      </span>
    </p>
  );
}
