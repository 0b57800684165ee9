import { join } from 'node:path';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import { inheritedVariables } from '../shared/programs.ts';
import type { ClaudeOptions } from './settings.ts';

/*
 * The variables of our environment that Claude inherits, in addition to those of every program: the documented ways to log in and to
 * reach its API, and nothing else. Keys of a cloud are passed on only if Claude was told to use that cloud.
 */
const ALWAYS = [/^ANTHROPIC_/, /^CLAUDE_/];
const CLOUDS: readonly (readonly [chosenBy: string, names: RegExp])[] = [
  ['CLAUDE_CODE_USE_BEDROCK', /^AWS_/],
  ['CLAUDE_CODE_USE_VERTEX', /^(?:GOOGLE_|GCLOUD_|CLOUD_ML_REGION$|VERTEX_REGION_)/],
  ['CLAUDE_CODE_USE_FOUNDRY', /^AZURE_/],
];
/** Variables that a Claude sets for the programs that it starts. If it has started us, they are about its session, not about ours. */
const OF_ANOTHER_SESSION =
  /^CLAUDE_(?:CODE_(?:ENTRYPOINT|SESSION_ID|SSE_PORT|RESUME_\w+|SDK_\w+|REMOTE\w*|CHILD_SESSION|EXECPATH)|AGENT_SDK_VERSION|PROJECT_DIR|ENV_FILE|PLUGIN_\w+|EFFORT|JOB_DIR)$/;

/*
 * Claude can continue without a prompt: a command in the background ends, a watched file changes, a timer fires. What it does then
 * would belong to no turn, so it is switched off (docs/decisions/0025). 2.1.325 needs both: with the variable alone, Monitor and
 * CronCreate still start it; the list alone leaves `run_in_background`.
 */
const NO_BACKGROUND_TASKS = 'CLAUDE_CODE_DISABLE_BACKGROUND_TASKS';
const WAKING_TOOLS = ['Monitor', 'ScheduleWakeup', 'CronCreate'];

/** They keep Claude from acting between turns, and conversations apart. The settings may override both. */
export const ISOLATION_DEFAULTS: Readonly<Record<string, string>> = {
  [NO_BACKGROUND_TASKS]: '1',
  // All sessions of a directory share one memory. Without this, words of one conversation would appear in another.
  CLAUDE_CODE_DISABLE_AUTO_MEMORY: '1',
};

/**
 * With this tool, Claude asks the user a question as a permission, and expects the answer with the permission. Our permissions carry no
 * answer, so Claude would get none (2.1.325). Without this tool it asks in its reply, and the next prompt answers.
 */
const QUESTIONS_TOOL = 'AskUserQuestion';

/** The tools that Claude is started without. */
export function forbiddenTools(env: Readonly<Record<string, string>>): readonly string[] {
  const noBackgroundTasks = /^(?:1|true|yes|on)$/i.test(env[NO_BACKGROUND_TASKS]?.trim() ?? '');
  return noBackgroundTasks ? [...WAKING_TOOLS, QUESTIONS_TOOL] : [QUESTIONS_TOOL];
}

/**
 * Settings that Claude is started with, in addition to the user's; no file is edited. Without `cleanupPeriodDays`, every start of Claude
 * deletes transcripts that are older than a month, also those of other conversations.
 */
export function flagSettings({ hooks }: { readonly hooks?: object }, noTools: boolean): object {
  return { cleanupPeriodDays: 36_500, ...(hooks === undefined || noTools ? {} : { hooks }) };
}

export function claudeVariables(ours: NodeJS.ProcessEnv): Record<string, string> {
  const clouds = CLOUDS.filter(([chosenBy]) => ours[chosenBy]).map(([, names]) => names);
  const taken = Object.entries(inheritedVariables([...ALWAYS, ...clouds], ours));
  return Object.fromEntries(taken.filter(([name]) => !OF_ANOTHER_SESSION.test(name)));
}

/** Everything that is added to the allowlisted environment of a sandbox. The settings take precedence. */
export function environmentIn(
  sandbox: OpenSandbox,
  ours: NodeJS.ProcessEnv,
  settings: Readonly<Record<string, string>>,
  home: ClaudeOptions['home'],
): Record<string, string> {
  return {
    ...claudeVariables(ours),
    ...ISOLATION_DEFAULTS,
    // Otherwise model calls in which a subagent only answers are not reported, and not counted.
    CLAUDE_CODE_FORWARD_SUBAGENT_TEXT: '1',
    ...(home === 'sandbox' ? { CLAUDE_CONFIG_DIR: join(sandbox.state, 'claude') } : {}),
    ...settings,
    // With this, Claude reports when it is idle. A result is not the end: more may follow.
    CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: '1',
  };
}
