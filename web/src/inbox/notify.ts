import { useEffect, useRef } from 'react';
import type { Conversation } from 'throughline/client';
import { readPreference, usePreference, writePreference } from '../data/preferences.ts';
import { say } from '../ui/say.ts';
import type { InboxSections, Need } from './sections.ts';

/** What a person is notified of. */
export interface Notice {
  /** One event, in all tabs. */
  readonly id: string;
  readonly title: string;
  readonly body: string;
  readonly path: string;
}

/** What has come since the inbox was looked at last: what waits, and what has ended. */
export function noticesOf(before: InboxSections, now: InboxSections): Notice[] {
  const waited = new Set(before.needs.map((need) => needNotice(need).id));
  const waits = now.needs.map(needNotice).filter(({ id }) => !waited.has(id));
  const ran = new Set(before.running.map(({ id }) => id));
  const ended = [...now.changed, ...now.resting].filter(({ id }) => ran.has(id));
  return [...waits, ...ended.map(endNotice)];
}

function needNotice(need: Need): Notice {
  if (need.kind === 'permission') {
    const { permission, conversation } = need;
    const title = conversation === null ? 'An agent asks you' : `${nameOf(conversation)} asks you`;
    return { id: permission.id, title, body: permission.title, path: `/c/${permission.conversationId}` };
  }
  if (need.kind === 'task') {
    const { id, name, goal, progress } = need.task;
    const body = progress.decision?.reason ?? '';
    return { id: `${id} ${progress.round}`, title: `Task ${name ?? goal} asks you`, body, path: `/tasks/${id}` };
  }
  const { id, lastSeq, stranded } = need.conversation;
  const [what, body] =
    need.kind === 'stranded'
      ? ['is stranded', stranded?.message ?? '']
      : ['was not restored', 'Its context could not be restored. Nothing was sent.'];
  return { id: `${id} ${lastSeq}`, title: `${nameOf(need.conversation)} ${what}`, body, path: `/c/${id}` };
}

const ENDS: Readonly<Record<string, string>> = { idle: 'is done', failed: 'failed', interrupted: 'was interrupted' };

function endNotice(row: Conversation): Notice {
  const title = `${nameOf(row)} ${ENDS[row.state] ?? 'has ended'}`;
  return { id: `${row.id} ${row.lastSeq}`, title, body: row.lastAgent ?? '', path: `/c/${row.id}` };
}

function nameOf({ title, key }: Conversation): string {
  return title || key || 'A conversation';
}

const WANTED = 'notify';
const TOLD = 'notified';
/** Ids of notices that some tab has shown; the rest is long ago. */
const MOST_TOLD = 100;

/** Browsers offer both only over https and on the machine itself. */
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

/** Held, shared, by every tab that somebody can see. */
const LOOKING = 'throughline.looking';

/** Tells by the browser what has come, once for all tabs, and only when nobody looks at one. */
export function useNotifications(inbox: InboxSections, isReady: boolean, go: (path: string) => void): void {
  const before = useRef<InboxSections | null>(null);
  useLooking();
  useEffect(() => {
    if (!isReady) return;
    const notices = before.current === null ? [] : noticesOf(before.current, inbox);
    before.current = inbox;
    if (!canNotify() || readPreference(WANTED) !== 'on' || Notification.permission !== 'granted') return;
    for (const notice of notices) tell(notice, go).catch(cannotTell);
  }, [inbox, isReady, go]);
}

async function tell({ id, title, body, path }: Notice, go: (path: string) => void): Promise<void> {
  await navigator.locks.request('throughline.notified', async () => {
    const told = (readPreference(TOLD) ?? '').split('\n');
    if (told.includes(id)) return;
    writePreference(TOLD, [...told, id].slice(-MOST_TOLD).join('\n'));
    const { held = [] } = await navigator.locks.query();
    if (held.some(({ name }) => name === LOOKING)) return;
    const shown = new Notification(title, { body, tag: id });
    shown.onclick = () => {
      window.focus();
      go(path);
      shown.close();
    };
  });
}

/** Chrome on Android lets no page do it, though it lets them ask whether they may. */
function cannotTell(): void {
  writePreference(WANTED, null);
  say('This browser does not let pages notify.', 'bad');
}

function useLooking(): void {
  useEffect(() => {
    if (!canNotify()) return;
    let leave = () => {};
    const look = () => {
      leave();
      if (document.visibilityState !== 'visible') return;
      const stop = new AbortController();
      const looking = new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve()));
      navigator.locks.request(LOOKING, { mode: 'shared', signal: stop.signal }, () => looking).catch(() => {}); // hidden before it was granted
      leave = () => stop.abort();
    };
    look();
    document.addEventListener('visibilitychange', look);
    return () => {
      document.removeEventListener('visibilitychange', look);
      leave();
    };
  }, []);
}
