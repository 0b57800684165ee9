import { useEffect } from 'react';
import { create } from 'zustand';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** `now`, `5 min`, `3 h`; then the day: `Tue`, after a week `12 Nov`, in another year `12 Nov 2025`. */
export function age(at: number, now: number): string {
  const ms = now - at;
  if (ms < MINUTE_MS) return 'now';
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`;
  const [then, today] = [new Date(at), new Date(now)];
  if (ms < 6 * DAY_MS) return then.toLocaleDateString('en-GB', { weekday: 'short' });
  const isThisYear = then.getFullYear() === today.getFullYear();
  return then.toLocaleDateString('en-GB', {
    day: 'numeric',
    month: 'short',
    ...(!isThisYear && { year: 'numeric' }),
  });
}

/** `41 ms`, `0.4 s`, `12 s`, `3 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 100) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** `950`, `12.3k`, `1.2M`. */
export function count(n: number): string {
  if (n < 1_000) return String(n);
  if (n < 999_500) return `${(n / 1_000).toFixed(n < 10_000 ? 1 : 0)}k`;
  return `${(n / 1_000_000).toFixed(1)}M`;
}

const BYTES = ['B', 'KB', 'MB', 'GB', 'TB'];

/** `512 B`, `3.4 MB`. */
export function bytes(amount: number): string {
  const power = Math.min(BYTES.length - 1, Math.floor(Math.log(Math.max(1, amount)) / Math.log(1_000)));
  const value = amount / 1_000 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${BYTES[power]}`;
}

/** How long ago, with the exact time as a tooltip. */
export function Ago({ at, className }: { at: number; className?: string }) {
  const now = useMinute();
  return (
    <time dateTime={new Date(at).toISOString()} title={new Date(at).toLocaleString()} className={className}>
      {age(at, now)}
    </time>
  );
}

const useClock = create(() => Date.now());
let isTicking = false;

/** The current time, updated every half minute by one timer for the whole page. */
function useMinute(): number {
  useEffect(() => {
    if (isTicking) return;
    isTicking = true;
    setInterval(() => useClock.setState(Date.now(), true), 30_000);
  }, []);
  return useClock();
}

/** The time of day of something today, else the day; with the exact time as a tooltip. */
export function At({ at, className }: { at: number; className?: string }) {
  const isToday = new Date(at).toDateString() === new Date(useMinute()).toDateString();
  const when = new Date(at);
  const shown = isToday
    ? when.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
    : when.toLocaleDateString([], { day: 'numeric', month: 'short' });
  return (
    <time dateTime={when.toISOString()} title={when.toLocaleString()} className={className}>
      {shown}
    </time>
  );
}
