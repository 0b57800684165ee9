/** The two times there are. Injected, so that tests own them. */
export interface Clock {
  /** Wall time in milliseconds: for people and for the record. It may jump. */
  now(): number;
  /** Milliseconds that only ever grow and that every process of this boot shares: for leases and waits. */
  monotonic(): number;
}
