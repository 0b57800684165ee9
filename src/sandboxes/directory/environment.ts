const ALLOWED = new Set(['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'TERM', 'TZ', 'TMPDIR']);

/** The part of our environment that every program may have. The rest can hold secrets and stays with us. */
export function allowedEnvironment(ours: NodeJS.ProcessEnv): Record<string, string> {
  const allowed: Record<string, string> = {};
  for (const [name, value] of Object.entries(ours)) {
    if (value !== undefined && (ALLOWED.has(name) || name.startsWith('LC_'))) allowed[name] = value;
  }
  return allowed;
}
