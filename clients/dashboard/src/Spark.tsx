// The size of the context, as it went. All rows have one scale, so that a full one looks full; the number stands beside it.
const width = 64;
const height = 30;
const scales = [200_000, 1_000_000]; // what contexts hold today: the smallest that it fits in

export function Spark({ sizes }: { sizes: readonly number[] }) {
  const most = Math.max(...sizes, 0);
  const full = scales.find((one) => most <= one) ?? most;
  const course = sizes.length === 1 ? [sizes[0]!, sizes[0]!] : sizes;
  const step = (width - 2) / Math.max(1, course.length - 1);
  const points = course.map((size, n) => `${(n * step + 1).toFixed(1)},${(height - 1 - (size / full) * (height - 2)).toFixed(1)}`);
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
      <path class="floor" d={`M1 ${height - 0.5}H${width - 1}`} />
      {points.length > 1 ? <path class="area" d={`M1,${height - 1}L${points.join("L")}L${width - 1},${height - 1}Z`} /> : null}
      {points.length > 1 ? <path class="line" d={`M${points.join("L")}`} /> : null}
    </svg>
  );
}
