# How far from its mark does a ball land, and what does the shot cost?  Prints one number, the value: less is better.
#     awk -v angle=40 -v speed=120 -v steps=500 -f cannon.awk
BEGIN {
    pi = atan2(0, -1); g = 9.81; drag = 0.0012; mark = 800; dt = 30 / steps
    vx = speed * cos(angle * pi / 180); vy = speed * sin(angle * pi / 180); x = y = 0
    do {
        v = sqrt(vx * vx + vy * vy); before_x = x; before_y = y
        vx -= dt * drag * v * vx; vy -= dt * (g + drag * v * vy)
        x += dt * vx; y += dt * vy
    } while (y > 0)
    lands = before_x + (x - before_x) * before_y / (before_y - y)
    miss = lands - mark
    printf "it lands at %.2f m\n", lands
    printf "%.9g\n", (miss / 20) ^ 2 / (1 + miss * miss / 10000) + (speed / 50) ^ 2
}
