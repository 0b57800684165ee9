import { useEffect, useRef } from 'react';
import type { Conversation, Task } from 'throughline/client';
import { readPreference, usePreference, writePreference } from '../data/preferences.ts';
import { say } from '../ui/say.ts';
import { nameOf } from '../ui/state.tsx';
import { type ForYouSections, isOpen, type Need } from './sections.ts';
import { wordsOf } from './words.ts';

/** A notification. */
export interface Notice {
  /** The same in all tabs, so that only one of them shows it. */
  readonly id: string;
  /** Says nothing of the content. */
  readonly plain: string;
  readonly title: string;
  readonly body: string;
  readonly path: string;
  /** A person is needed; otherwise something has ended. */
  readonly isNeed: boolean;
}

/** What is new: what needs a person now, and what has ended. */
export function noticesOf(before: ForYouSections, now: ForYouSections): Notice[] {
  const waited = new Set(before.needs.flatMap(needNotices).map(({ id }) => id));
  const waits = now.needs.flatMap(needNotices).filter(({ id }) => !waited.has(id));
  // A turn may end at once after its question was answered.
  const asked = before.needs.filter(({ kind }) => kind === 'questions');
  const open = [...before.running, ...before.later, ...before.tasks.filter(isOpen), ...asked];
  const ran = new Set(open.map(({ id }) => id));
  const ended = [...now.answered, ...now.resting].filter(({ id }) => ran.has(id));
  const passed = now.tasks.filter((task) => !isOpen(task) && ran.has(task.id));
  return [...waits, ...ended.map(endNotice), ...passed.map(passNotice)];
}

function needNotices(need: Need): Notice[] {
  if (need.kind === 'questions') {
    const { permissions, conversation, id: of } = need;
    const title = conversation === null ? 'An agent asks you' : `${nameOf(conversation)} asks you`;
    return permissions.map((permission) => {
      const body = wordsOf({ ...need, permissions: [permission] });
      return { id: permission.id, plain: 'An agent asks you', title, body, path: `/c/${of}`, isNeed: true };
    });
  }
  if (need.kind === 'task') {
    const { id, name, goal, state, progress } = need.task;
    const what = state === 'failed' ? 'gave up' : 'asks you';
    const body = progress.decision?.reason ?? '';
    const about = { id: `${id} ${progress.round} ${state}`, path: `/tasks/${id}`, isNeed: true };
    return [{ ...about, plain: `A task ${what}`, title: `Task ${name ?? goal} ${what}`, body }];
  }
  const { id, lastSeq, stranded } = need.conversation;
  const [what, body] =
    need.kind === 'stranded'
      ? ['is stranded', stranded?.message ?? '']
      : ['was not restored', 'Its context could not be restored. Nothing was sent.'];
  const about = { id: `${id} ${lastSeq}`, path: `/c/${id}`, isNeed: true };
  return [{ ...about, plain: `A conversation ${what}`, title: `${nameOf(need.conversation)} ${what}`, body }];
}

const ENDS: Readonly<Record<string, string>> = { idle: 'is done', failed: 'failed', interrupted: 'was interrupted' };

function endNotice(row: Conversation): Notice {
  const what = ENDS[row.state] ?? 'has ended';
  const about = { id: `${row.id} ${row.lastSeq}`, path: `/c/${row.id}`, isNeed: false };
  return { ...about, plain: `A conversation ${what}`, title: `${nameOf(row)} ${what}`, body: row.lastAgent ?? '' };
}

function passNotice({ id, name, goal, progress }: Task): Notice {
  const about = { id: `${id} ${progress.round} done`, path: `/tasks/${id}`, isNeed: false };
  return { ...about, plain: 'A task is done', title: `Task ${name ?? goal} is done`, body: '' };
}

const WANTED = 'notify';
/** Whether notifications may say what a conversation is about: others may see the screen. */
const WITH_CONTENT = 'notify.content';
const NOTIFIED = 'notified';
/** How many ids of shown notices are stored. */
const MOST_NOTIFIED = 100;

/** Browsers offer both only over HTTPS and on localhost. */
function canNotify(): boolean {
  return 'Notification' in window && 'locks' in navigator;
}

export function useNotifying() {
  const [wanted, setWanted] = usePreference(WANTED);
  const [content, setContent] = usePreference(WITH_CONTENT);
  const isPossible = canNotify() && Notification.permission !== 'denied';
  return {
    isPossible,
    isOn: isPossible && wanted === 'on' && Notification.permission === 'granted',
    turnOn: async () => {
      if ((await Notification.requestPermission()) === 'granted') setWanted('on');
    },
    turnOff: () => setWanted(null),
    hasContent: content === 'on',
    allowContent: (isAllowed: boolean) => setContent(isAllowed ? 'on' : null),
  };
}

/** A shared lock that every visible tab holds. */
const VISIBLE = 'throughline.looking';

/** Shows notifications, once for all tabs, and only while no tab is visible. */
export function useNotifications(now: ForYouSections, isReady: boolean, go: (path: string) => void): void {
  const before = useRef<ForYouSections | null>(null);
  useVisibleLock();
  useEffect(() => {
    if (!isReady) return;
    const notices = before.current === null ? [] : noticesOf(before.current, now);
    before.current = now;
    if (!canNotify() || readPreference(WANTED) !== 'on' || Notification.permission !== 'granted') return;
    for (const notice of notices) notify(notice, go).catch(onRefused);
  }, [now, isReady, go]);
}

async function notify({ id, plain, title, body, path }: Notice, go: (path: string) => void): Promise<void> {
  await navigator.locks.request('throughline.notified', async () => {
    const notified = (readPreference(NOTIFIED) ?? '').split('\n');
    if (notified.includes(id)) return;
    writePreference(NOTIFIED, [...notified, id].slice(-MOST_NOTIFIED).join('\n'));
    const { held = [] } = await navigator.locks.query();
    if (held.some(({ name }) => name === VISIBLE)) return;
    const shown =
      readPreference(WITH_CONTENT) === 'on'
        ? new Notification(title, { body, tag: id })
        : new Notification(plain, { tag: id });
    shown.onclick = () => {
      window.focus();
      go(path);
      shown.close();
    };
  });
}

/** Chrome on Android refuses notifications of pages, although it grants the permission. */
function onRefused(): void {
  writePreference(WANTED, null);
  say('This browser does not allow pages to show notifications.', 'bad');
}

function useVisibleLock(): void {
  useEffect(() => {
    if (!canNotify()) return;
    let release = () => {};
    const update = () => {
      release();
      if (document.visibilityState !== 'visible') return;
      const stop = new AbortController();
      const released = new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve()));
      navigator.locks.request(VISIBLE, { mode: 'shared', signal: stop.signal }, () => released).catch(() => {}); // hidden before it was granted
      release = () => stop.abort();
    };
    update();
    document.addEventListener('visibilitychange', update);
    return () => {
      document.removeEventListener('visibilitychange', update);
      release();
    };
  }, []);
}
