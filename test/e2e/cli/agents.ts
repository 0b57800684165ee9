/** Settings for the tests of the command line: scripted agents that misbehave in different ways. */
export const AGENTS = {
  scripted: { adapter: 'scripted' },
  /** Forgets everything when its process ends. */
  forgetful: { adapter: 'scripted', options: { memory: 'process' } },
  /** Claims to resume every id but has no history, and does not let us read its storage. */
  hollow: { adapter: 'scripted', options: { resume: 'hollow', position: false } },
  rotating: { adapter: 'scripted', options: { ids: 'rotating' } },
  /** The operating system starts no program with an environment of this size. */
  unstartable: { adapter: 'scripted', env: { TOO_LARGE: 'x'.repeat(3_000_000) } },
  slow: { adapter: 'scripted', options: { chunkMs: 60 } },
};
