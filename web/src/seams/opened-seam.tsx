import { type ComponentProps, Suspense } from 'react';
import { lazily } from '../ui/lazily.tsx';
import { Skeleton } from '../ui/notes.tsx';

const SeamDetails = lazily(async () => (await import('./seam-details.tsx')).SeamDetails);

/** The details of a seam. Their code is loaded when the first seam is opened. */
export function OpenedSeam(props: ComponentProps<typeof SeamDetails>) {
  return (
    <Suspense fallback={<Skeleton lines={4} />}>
      <SeamDetails {...props} />
    </Suspense>
  );
}
