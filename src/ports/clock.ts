/** Wall time and monotonic time. Injected, so that tests can set them. */
export interface Clock {
  /** Wall time in milliseconds: for people and for the record. It may jump. */
  now(): number;
  /** Milliseconds that never go back, the same for every process of this boot: for waits. (Leases use the store's own time.) */
  monotonic(): number;
}
