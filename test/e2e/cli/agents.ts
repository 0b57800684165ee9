/** Scripted agents with different ways to misbehave, as they stand in the settings of the command line's tests. */
export const AGENTS = {
  scripted: { adapter: 'scripted' },
  /** Knows nothing once its process has ended. */
  forgetful: { adapter: 'scripted', options: { memory: 'process' } },
  /** Says yes to every id, and nobody can look into its storage. */
  hollow: { adapter: 'scripted', options: { resume: 'hollow', position: false } },
  rotating: { adapter: 'scripted', options: { ids: 'rotating' } },
  /** No program can be started with an environment of this size. */
  unstartable: { adapter: 'scripted', env: { TOO_LARGE: 'x'.repeat(3_000_000) } },
  slow: { adapter: 'scripted', options: { chunkMs: 60 } },
};
