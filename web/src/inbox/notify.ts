import { useEffect, useRef } from 'react';
import type { Conversation } from 'throughline/client';
import { readPreference, usePreference, writePreference } from '../data/preferences.ts';
import { say } from '../ui/say.ts';
import { nameOf } from '../ui/state.tsx';
import type { InboxSections, Need } from './sections.ts';

/** A notification. */
export interface Notice {
  /** The same in all tabs, so that only one of them shows it. */
  readonly id: string;
  readonly title: string;
  readonly body: string;
  readonly path: string;
  /** A person is needed; otherwise something has ended. */
  readonly isNeed: boolean;
}

/** What is new in the inbox: what needs a person now, and what has ended. */
export function noticesOf(before: InboxSections, now: InboxSections): Notice[] {
  const waited = new Set(before.needs.map((need) => needNotice(need).id));
  const waits = now.needs.map(needNotice).filter(({ id }) => !waited.has(id));
  // A turn may end at once after its question was answered.
  const asked = before.needs.flatMap((need) => (need.kind === 'permission' ? need.permission.conversationId : []));
  const ran = new Set([...before.running.map(({ id }) => id), ...asked]);
  const ended = [...now.changed, ...now.resting].filter(({ id }) => ran.has(id));
  return [...waits, ...ended.map(endNotice)];
}

function needNotice(need: Need): Notice {
  if (need.kind === 'permission') {
    const { permission, conversation } = need;
    const title = conversation === null ? 'An agent asks you' : `${nameOf(conversation)} asks you`;
    return { id: permission.id, title, body: permission.title, path: `/c/${permission.conversationId}`, isNeed: true };
  }
  if (need.kind === 'task') {
    const { id, name, goal, progress } = need.task;
    const body = progress.decision?.reason ?? '';
    const path = `/tasks/${id}`;
    return { id: `${id} ${progress.round}`, title: `Task ${name ?? goal} asks you`, body, path, isNeed: true };
  }
  const { id, lastSeq, stranded } = need.conversation;
  const [what, body] =
    need.kind === 'stranded'
      ? ['is stranded', stranded?.message ?? '']
      : ['was not restored', 'Its context could not be restored. Nothing was sent.'];
  return {
    id: `${id} ${lastSeq}`,
    title: `${nameOf(need.conversation)} ${what}`,
    body,
    path: `/c/${id}`,
    isNeed: true,
  };
}

const ENDS: Readonly<Record<string, string>> = { idle: 'is done', failed: 'failed', interrupted: 'was interrupted' };

function endNotice(row: Conversation): Notice {
  const title = `${nameOf(row)} ${ENDS[row.state] ?? 'has ended'}`;
  return { id: `${row.id} ${row.lastSeq}`, title, body: row.lastAgent ?? '', path: `/c/${row.id}`, isNeed: false };
}

const WANTED = 'notify';
const NOTIFIED = 'notified';
/** How many ids of shown notices are stored. */
const MOST_NOTIFIED = 100;

/** Browsers offer both only over HTTPS and on localhost. */
function canNotify(): boolean {
  return 'Notification' in window && 'locks' in navigator;
}

export function useNotifying() {
  const [wanted, setWanted] = usePreference(WANTED);
  const isPossible = canNotify() && Notification.permission !== 'denied';
  return {
    isPossible,
    isOn: isPossible && wanted === 'on' && Notification.permission === 'granted',
    turnOn: async () => {
      if ((await Notification.requestPermission()) === 'granted') setWanted('on');
    },
    turnOff: () => setWanted(null),
  };
}

/** A shared lock that every visible tab holds. */
const VISIBLE = 'throughline.looking';

/** Shows notifications, once for all tabs, and only while no tab is visible. */
export function useNotifications(inbox: InboxSections, isReady: boolean, go: (path: string) => void): void {
  const before = useRef<InboxSections | null>(null);
  useVisibleLock();
  useEffect(() => {
    if (!isReady) return;
    const notices = before.current === null ? [] : noticesOf(before.current, inbox);
    before.current = inbox;
    if (!canNotify() || readPreference(WANTED) !== 'on' || Notification.permission !== 'granted') return;
    for (const notice of notices) notify(notice, go).catch(onRefused);
  }, [inbox, isReady, go]);
}

async function notify({ id, title, body, path }: Notice, go: (path: string) => void): Promise<void> {
  await navigator.locks.request('throughline.notified', async () => {
    const notified = (readPreference(NOTIFIED) ?? '').split('\n');
    if (notified.includes(id)) return;
    writePreference(NOTIFIED, [...notified, id].slice(-MOST_NOTIFIED).join('\n'));
    const { held = [] } = await navigator.locks.query();
    if (held.some(({ name }) => name === VISIBLE)) return;
    const shown = new Notification(title, { body, tag: id });
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
