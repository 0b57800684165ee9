/*
 * Claude can go on without being prompted: a command in the background ends, a watch sees something, a time that it set has
 * come. Whatever it then does would belong to no turn, so it is not let (2.1.325: both are needed; with the variable alone
 * Monitor and CronCreate still woke it, and the list alone leaves `run_in_background`).
 */
const VARIABLE = 'CLAUDE_CODE_DISABLE_BACKGROUND_TASKS';
const WAKING_TOOLS = ['Monitor', 'ScheduleWakeup', 'CronCreate'];

/** What keeps Claude to its turns, and its conversations to themselves. Whoever sets them otherwise gets what they ask for. */
export const KEPT_TO_ITSELF: Readonly<Record<string, string>> = {
  [VARIABLE]: '1',
  // Its memory is one for all sessions of a directory, and told to each: what was said in one conversation, in another's.
  CLAUDE_CODE_DISABLE_AUTO_MEMORY: '1',
};

/**
 * Claude offers it to whoever answers for permissions, and wants the answers back with the leave: a permission has none, so it
 * would be told that nobody answered (2.1.325). What it asks in its reply instead, the next prompt answers.
 */
const QUESTIONS = 'AskUserQuestion';

/** The tools that Claude is started without. */
export function forbiddenTools(env: Readonly<Record<string, string>>): readonly string[] {
  const kept = /^(?:1|true|yes|on)$/i.test(env[VARIABLE]?.trim() ?? '');
  return kept ? [...WAKING_TOOLS, QUESTIONS] : [QUESTIONS];
}
