/** The text that a snippet shows or hides stands where a snippet has this sign. */
export const place = '§'

/** A style of a paragraph on white, with the text in it. */
const styled = (styles: string): string[] => lines(styles).map((style) => `<p style='${style}'>§</p>`)

/** A rule for `<div class=o><p class="a b" id=i style="">§</p></div>`. */
const ruled = (rules: string): string[] =>
  lines(rules).map((rule) => `<style>${rule}</style><div class="o"><p class="a b" id="i" title="t">§</p></div>`)

function lines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

const many = (count: number, one: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => one(index)).join('')

const inside = (count: number, text: string): string =>
  many(count, (index) => `<div class="o${index + 1}">`) + text + '</div>'.repeat(count)

/** What hides a text behind more of something than a reader of styles might look at. */
function beyondBounds(): string[] {
  const hides = '.z{display:none}'
  const sheets = [
    many(5000, (index) => `.a${index}{color:red}`) + hides,
    `/*${'x'.repeat(300_000)}*/${hides}`,
    many(20_000, (index) => `.abcdefg${index}{}`) + hides,
    many(6000, (index) => `.v${index}{--v${index}:0}`) + '.z{--last:none;display:var(--last)}',
    `.z:not(.${'q'.repeat(500)}){display:none}`,
    `html body .o1 .o2 .o3 .o4 .o5 .o6 .o7 .o8 .z{display:none}`,
    `.o1{${many(25, (index) => `.n${index},`)}.z{display:none}}`,
    `.o1{${'&{'.repeat(15)}.z{display:none}${'}'.repeat(16)}`,
    `:root{${many(12, (index) => `--c${index}:var(--c${index + 1});`)}--c12:none}.z{display:var(--c0)}`,
    many(300, (index) => `@keyframes k${index}{to{color:red}}`) + '@keyframes z{to{opacity:0}}.z{animation:z .01s forwards}',
    `.z{animation:${many(30, (index) => `k${index} 1s,`)}z .01s forwards}@keyframes z{to{opacity:0}}`,
    '@media     only          screen       and          (min-width      :         1px){.z{display:none}}',
  ]
  const styles = [
    `${'a:b;'.repeat(4000)}display:none`,
    `background:url(data:image/png;base64,${'A'.repeat(20_000)});display:none`,
    `opacity:calc(${'0 + '.repeat(200)}0)`,
    `opacity:calc(${'('.repeat(20)}0${')'.repeat(20)})`,
    `opacity:0.${'0'.repeat(30)}`,
    `opacity:${'0'.repeat(30)}`,
    `color:rgb(255${' '.repeat(400)}255 255)`,
    `font-size:calc(0px${' '.repeat(20)}*${' '.repeat(20)}2)`,
    'opacity:sin(0)',
    'opacity:calc(1 - cos(0))',
    'opacity:mod(4, 2)',
    'opacity:rem(4, 2)',
    'opacity:round(down, .9)',
    'opacity:pow(0, 2)',
    'opacity:sqrt(0)',
    'opacity:hypot(0, 0)',
    'opacity:log(1)',
    'opacity:calc(exp(0) - 1)',
    'opacity:sign(0)',
    'opacity:abs(0)',
    'opacity:calc(pi * 0)',
    'opacity:calc(-infinity)',
    'position:absolute;left:calc(-infinity * 1px)',
    'font-size:calc(1px / infinity)',
    'opacity:env(nothing, 0)',
    'display:env(nothing, none)',
    'color:rgb(calc(infinity) 255 255)',
    'color:color-mix(in srgb, white calc(50% + 49%), black)',
  ]
  return [
    ...sheets.map((css) => `<style>${css}</style>${inside(8, '<p class="z">§</p>')}`),
    ...styles.map((style) => `<p style="${style}">§</p>`),
    `<style>${hides}</style><p class="${'x '.repeat(9000)}z">§</p>`,
    `<style>${hides}</style><p class="&amp;${'x '.repeat(9000)}z">§</p>`,
  ]
}

/** Snippets whose text a person sees in Chromium, as `test/peers/screening-looks.test.ts` measures. */
export const shown: readonly string[] = [
  '<style media=print>.a{display:none}</style><p class=a>§</p>',
  '<style type="text/plain">.a{display:none}</style><p class=a>§</p>',
  ...styled(`
    color:white;color:rgb(0,0,0,1)
    color:white;color:color-mix(red,blue)
    color:white;color:hsl(0,0%,0%)
    transform:scale(0px)
    scale:0px
    display:none;display:block
    display:none!important;display:block!important
    display:block!important;display:none
    display:foo
    visibility:hidden;visibility:visible
    visibility:none
    opacity:0;opacity:1
    opacity:.6
    opacity:none
    color:#0008
    color:rgb(0 0 0 / 70%)
    color:white;color:black
    color:#fff;color:rgba(0,0,0,1)
    color:rgb(255,255,255);color:rgb(0 0 0/.8)
    color:hsl(120deg 100% 25%)
    color:hwb(240 0% 0%)
    color:oklch(50% .2 29)
    color:oklab(40% 0.1 0.1)
    color:lab(30% 40 20)
    color:lch(30% 40 20)
    color:color(srgb 0 .2 0)
    color:color(display-p3 0 0 1)
    color:color-mix(in srgb,white 20%,black)
    color:color-mix(in oklch,black,red)
    color:CanvasText
    color:LinkText
    color:-webkit-link
    color:var(--none,#222)
    --c:#222;color:var(--c)
    --c:white;--c:black;color:var(--c)
    color:#f00
    color:#36c8
    color:white;background:#00000080
    color:white;background:rgba(0,0,0,.6)
    color:white;background:navy
    color:white;background:hsl(220 80% 20%)
    color:white;background:oklch(30% .1 250)
    color:white;background:linear-gradient(black,navy)
    color:white;-webkit-text-fill-color:black
    font-size:0;font-size:14px
    font-size:2;
    font-size:-1px
    font-size:max(0px,14px)
    font:0/0 a;font-size:14px
    font:foo;
    line-height:0
    line-height:0;font-size:16px;padding:20px
    letter-spacing:-1px
    letter-spacing:2px
    word-spacing:-3px
    text-indent:-20px;padding-left:30px
    margin-left:-9999px;margin-left:0
    margin-left:-5px
    margin-block:0 10px
    margin-inline:auto
    position:absolute;left:-9999px;left:20px
    position:absolute;left:10px;top:10px
    position:static;left:-9999px
    left:-9999px
    position:relative;inset-inline-start:10px
    inset:-9999px
    transform:translateX(20px)
    transform:translateX(-9999px);transform:none
    transform:foo(1)
    transform:scale(.8)
    scale:.7
    rotate:1deg
    color:white;color:rgb(0 0 0
    color:oklch(100% .3 40)
    zoom:.8
    zoom:1
    height:0
    height:0;overflow:visible
    height:0;overflow:hidden;overflow:visible
    block-size:0
    inline-size:100px
    max-height:0;max-height:none;overflow:hidden
    max-height:100px;overflow:hidden
    width:0
    inline-size:0;overflow:visible
    height:0;overflow:hidden;padding-bottom:40px
    height:0;overflow:hidden;padding:30px
    clip-path:none
    clip-path:inset(0)
    clip-path:circle(100%)
    clip-path:polygon(0 0,100% 0,100% 100%,0 100%)
    clip:rect(0,0,0,0)
    position:absolute;clip:auto
    mask-image:linear-gradient(black,black)
    filter:blur(0)
    filter:brightness(0)
    filter:opacity(1)
    filter:none
    filter:invert(0)
    content-visibility:auto
    content-visibility:visible
    z-index:-1
    d/**/isplay:none
    dis\\play:none;display:block
    x:"display:none
    background:url(data:a;b);color:black
    backface-visibility:hidden
    text-transform:lowercase
    mso-hide:all
    all:unset;display:block
    color:initial
    color:unset
    color:revert
    display:none;display:revert
    opacity:0;all:initial
    color:white;all:revert
  `),
  ...ruled(`
    .a{animation:k .01s forwards}@keyframes k{from{opacity:0}to{opacity:1}}
    .a{animation:other .01s forwards}@keyframes k{to{opacity:0}}
    .a{animation:k .01s}@keyframes k{to{opacity:0}}
    .a{display:none}.a{display:block}
    .a{display:none}#i{display:block}
    #i{display:block}.a{display:none}
    .a.b{display:block}.a{display:none}
    p.a{display:block}.a{display:none}
    .a{display:block}p{display:none}
    .o .a{display:block}.a{display:none}
    .a{display:block!important}#i{display:none}
    .z .a{display:none}
    p:not(.a){display:none}
    .a:not(.b){display:none}
    :is(.z,.y){display:none}
    .a:hover{display:none}
    .a::before{content:"x";display:none}
    .a:empty{display:none}
    .o>.z{display:none}
    @media print{.a{display:none}}
    @media (max-width:400px){.a{display:none}}
    @media screen and (max-width:400px){.a{display:none}}
    @media not all{.a{display:none}}
    @supports (display:foo){.a{display:none}}
    @supports not (display:grid){.a{display:none}}
    @layer x{.a{display:none}}.a{display:block}
    @layer x,y;@layer y{.a{display:block}}@layer x{.a{display:none}}
    .a{display:block}@layer x{.a{display:none}}
    .a{display:none}@media screen{.a{display:block}}
    [title=u]{display:none}
    /* .a{display:none} */
    .a{/*display:none*/}
    .a{}}.a{display:none}
    .o{color:white}.a{color:black}
    :root{--d:none}.a{--d:block;display:var(--d)}
    @media (prefers-color-scheme:dark){.a{color:#fff}}
    .a{color:#fff}@media (prefers-color-scheme:light){.a{color:#000}}
    :where(#i){display:none}.a{display:block}
    @font-face{font-family:x}.a{color:#000}
    .\\61 b{display:none}
  `),
  '<div style="opacity:.7"><p style="opacity:.7">§</p></div>',
  '<div style="color:white"><p style="color:black">§</p></div>',
  '<style>u + .body .a{display:none}</style><p class="x">x</p><p class="body"><b class="a">§</b></p>',
  '<style>.x + .b{color:#000}.b{color:#fff}</style><p class="x">x</p><p class="b">§</p>',
  '<div style="font-size:0"><p style="font-size:16px">§</p></div>',
  '<div style="font-size:1px"><p style="font-size:1rem">§</p></div>',
  '<div style="font-size:50%"><p style="font-size:1em">§</p></div>',
  '<div style="transform:scale(.1)"><p style="transform:scale(10)">§</p></div>',
  '<div style="zoom:.5"><p style="zoom:2">§</p></div>',
  '<div style="line-height:0"><p style="line-height:1.5">§</p></div>',
  '<div style="text-indent:-9999px"><p style="text-indent:0">§</p></div>',
  '<div style="position:absolute;left:-1000px"><p style="margin-left:1020px;white-space:nowrap">§</p></div>',
  '<table bgcolor="#003366"><tr><td><font color="#ffffff">§</font></td></tr></table>',
  '<table style="background:#222"><tr><td style="background:none;color:#eee">§</td></tr></table>',
  '<div style="background:black"><p style="color:rgba(255,255,255,.8)">§</p></div>',
  '<div style="background:black;opacity:.9"><p style="color:#ffffffcc">§</p></div>',
  '<div style="background:#000000"><div style="background:#ffffff10"><p style="color:white">§</p></div></div>',
  '<div style="background:black"><p style="background:#fffc;color:black">§</p></div>',
  '<div style="color:black"><p style="background:currentcolor"><b style="color:white">§</b></p></div>',
  '<span style="height:0;width:0;overflow:hidden">§</span>',
  '<div style="height:0;overflow:hidden;display:inline">§</div>',
  '<div style="overflow:hidden;height:0"></div><p>§</p>',
  '<div style="display:contents;opacity:0">§</div>',
  '<details open><summary>more</summary>§</details>',
  '<p><del>§</del></p>',
  '<a href="https://shop.test/" style="background:#06c;color:#fff">§</a>',
  '<p style="color:white">x</p><p>§</p>',
  '<a style="display:none"><div></a>§</div>',
  '<div style="display:none"><font>x</div>§',
  '<table><tr><td style="display:none"><b>x</td><td>§</td></tr></table>',
  '<span style="display:none"><b>x</span>§',
]

/** Snippets whose text nobody sees in Chromium. */
export const unseen: readonly string[] = [
  ...beyondBounds(),
  `<style>.z{display:none}</style><p class="${Array.from({ length: 30 }, (_, index) => `c${index}`).join(' ')} z">§</p>`,
  '<style media=screen>.a{display:none}</style><p class=a>§</p>',
  '<style type="text/css" media="print, screen">.a{display:none}</style><p class=a>§</p>',
  '<style>body{color:#fff}</style><p>§</p>',
  '<style>body>p{display:none}</style><p>§</p>',
  '<style>.x + .b{display:none}</style><p class="x">x</p><p class="b">§</p>',
  '<style>.x ~ .b{display:none}</style><p class="x">x</p><p>y</p><p class="b">§</p>',
  '<style>tr:nth-child(even) td{display:none}</style><table><tr><td>x</td></tr><tr><td>§</td></tr></table>',
  ...styled(`
    color:white;color:rgb(0,0,0 / 1)
    color:white;color:hsl(0,0,0)
    color:white;color:hwb(0,0%,100%)
    transform:scale(0);transform:scale(1px)
    scale:0;scale:1px
    offset-path:path("M-9999 0L-9999 1");offset-distance:0
    mask-size:0 0;mask-image:linear-gradient(#000,#000)
    display:table-column
    display:table-column-group
    display:none
    display:none;display:foo
    display:none;display:block block
    display:none;display:block;x;display:none
    display:none;display:block inline
    display:none;display:none none
    display:none;display:blocks
    display:none;display:block 1
    display:none;display:list-item table
    display:none!important;display:block
    display:none ! important;display:block
    DISPLAY:NONE
    d\\69splay:n\\6fne
    display:/**/none/**/
    --d:none;display:var(--d)
    display:var(--x,none)
    display:var(--x,var(--y,none))
    visibility:hidden
    visibility:hidden;visibility:none
    visibility:hidden;visibility:show
    visibility:hidden;visibility:visible visible
    visibility:collapse
    opacity:0
    opacity:0%
    opacity:-1
    opacity:1e-9
    opacity:0;opacity:none
    opacity:0;opacity:1;opacity:0
    opacity:0;opacity:1 1
    opacity:calc(1% - 1%)
    color:white
    color:white;color:blackk
    color:white;color:#12345
    color:white;color:#gg0000
    color:white;color:000000
    color:white;color:rgb(0,0)
    color:white;color:rgb(0,0 0)
    color:white;color:rgb(0 0 0 0 0)
    color:white;color:rgb(0deg 0 0)
    color:white;color:rgb(0px 0px 0px)
    color:white;color:hsl(0,0,0,0,0)
    color:white;color:hsl(0,0,0)x
    color:white;color:foo(0 0 0)
    color:white;color:black black
    color:white;color:color(foo 0 0 0)
    color:white;color:0
    color:#ffffffaa
    color:#fff8
    color:rgba(255,255,255,.5)
    color:rgb(255 255 255 / 50%)
    color:rgb(100% 100% 100%)
    color:rgb(300,300,300)
    color:rgba(0,0,0,0)
    color:rgb(0 0 0 / 2%)
    color:#00000005
    color:hsl(0 0% 100%)
    color:hsla(200,10%,99%,.9)
    color:hsl(0.5turn 0% 100%)
    color:hwb(120 100% 0%)
    color:hwb(120 100% 0% / .5)
    color:oklch(1 0 0)
    font-size:0;font-size:foo
    color:oklab(1 0 0)
    color:oklab(100% 0 0 / 60%)
    color:lab(100% 0 0)
    color:lch(100% 0 none)
    color:color(srgb 1 1 1 / .5)
    color:color(display-p3 1 1 1)
    color:color(xyz .95 1 1.09)
    color:color(srgb-linear 1 1 1)
    color:color-mix(in srgb,white,transparent)
    color:color-mix(in oklch,white,white)
    color:color-mix(in srgb,white 98%,black)
    color:color-mix(in srgb,black,white 99%)
    color:color-mix(in srgb,black 0%,transparent)
    color:Canvas
    color:Field
    color:Window
    color:light-dark(white,black)
    color:rgb(from white r g b)
    color:rgb(from white r g b / .5)
    color:transparent
    --c:white;color:var(--c)
    --c:255,255,255;color:rgb(var(--c))
    --c:black;--c:white;color:var(--c)
    background:black;color:black
    background:black;color:rgba(0,0,0,.5)
    background:red;color:#ff0000cc
    background:hsl(220 80% 20%);color:hsl(220 80% 20%)
    background:oklch(60% .2 250);color:oklch(60% .2 250)
    background:lab(40% 50 20);color:lab(40% 50 20)
    background:lch(40% 50 20);color:lch(40% 50 20)
    background:color(display-p3 1 0 0);color:color(display-p3 1 0 0)
    background:currentcolor
    background:#00000001;color:white
    background:black;background:foo;color:black
    background:white;background:black black;color:white
    -webkit-text-fill-color:white
    -webkit-text-fill-color:#fff8
    color:white;-webkit-text-fill-color:currentcolor
    background:linear-gradient(white,white);color:white
    background:linear-gradient(transparent,transparent);color:white
    font-size:0
    font-size:0;font-size:12
    font-size:0;font-size:-12px
    font-size:0;font-size:12px 12px
    font-size:1px
    font-size:.05em
    font-size:5%
    font-size:calc(1px + 0em)
    font-size:min(1px,1em)
    font:1px/1 serif
    font:0/0 a
    font:16px serif;font:0/0 a
    font:0/0 a;font:foo
    font:0/0 a;font:16px
    font-size:16px;font:1px serif
    font-size:1px!important;font:16px serif
    line-height:0;overflow:hidden
    letter-spacing:-1em
    letter-spacing:-20px
    text-indent:-9999px
    text-indent:-999em
    text-indent:200%;overflow:hidden;white-space:nowrap
    text-indent:100%;overflow:hidden;white-space:nowrap
    margin-left:-9999px
    margin-inline-start:-9999px
    margin-inline:-9999px 0
    margin-block-start:-9999px
    margin-block:-9999px 0
    margin-top:-9999px
    margin:-9999px
    margin:0;margin:-9999px 0 0 -9999px
    position:absolute;left:-9999px
    position:absolute;left:-9999px;left:foo
    position:absolute;left:-9999px;left:20
    position:absolute;inset-inline-start:-9999px
    position:absolute;inset-inline:-9999px auto
    position:absolute;inset-block-start:-9999px
    position:absolute;inset-block:-9999px auto
    position:absolute;inset:auto auto 9999px auto
    position:absolute;right:9999px
    position:fixed;top:-9999px
    position:fixed;top:100%
    position:fixed;left:100vw
    position:relative;left:-9999px
    position:relative;inset-inline-end:9999px
    position:absolute;position:foo;left:-9999px
    transform:scale(0)
    transform:scale(.5) scale(.1)
    transform:scale(0);transform:foo
    transform:scale(0);transform:scale()
    transform:scale(0);transform:translate
    transform:scale(1,0)
    transform:translate(-9999px)
    transform:translateX(-5000px) translateX(-5000px)
    transform:translateX(-400px) translateX(-400px) translateX(-400px)
    transform:translateY(-9999px)
    transform:rotateX(90deg)
    transform:rotateY(45deg) rotateY(45deg)
    transform:matrix(.01,0,0,.01,0,0)
    scale:0
    scale:1 0
    scale:0;scale:foo
    translate:-9999px
    translate:0 -9999px
    rotate:x 90deg
    rotate:1 0 0 90deg
    zoom:.01
    zoom:1%
    height:0;overflow:hidden
    height:0;overflow:clip
    height:0;overflow:hidden;overflow:foo
    height:0;overflow-y:hidden
    height:0;height:foo;overflow:hidden
    height:0;height:20;overflow:hidden
    max-height:0;overflow:hidden
    max-height:0;max-height:foo;overflow:hidden
    width:0;overflow:hidden
    block-size:0;overflow:hidden
    block-size:0;overflow-block:hidden
    max-block-size:0;overflow:hidden
    inline-size:0;overflow:hidden
    inline-size:0;overflow-inline:hidden
    max-inline-size:0;overflow:hidden
    width:0;contain:paint
    height:0;contain:strict
    height:1px;overflow:hidden
    height:1px;width:1px;overflow:hidden
    clip-path:inset(50%)
    clip-path:inset(100%)
    clip-path:circle(0)
    clip-path:ellipse(0 0)
    clip-path:polygon(0 0)
    clip-path:polygon(0 0,0 0,0 0)
    clip-path:rect(0 0 0 0)
    clip-path:xywh(0 0 0 0)
    clip-path:path("M0 0")
    clip-path:inset(50%);clip-path:foo
    clip-path:circle(0 at 0 0)
    -webkit-clip-path:inset(50%)
    position:absolute;clip:rect(0,0,0,0)
    position:absolute;clip:rect(1px 1px 1px 1px)
    position:absolute;clip:rect(0,0,0,0);clip:foo
    mask-image:linear-gradient(transparent,transparent)
    mask:linear-gradient(#0000,#0000)
    -webkit-mask:linear-gradient(transparent,transparent)
    filter:opacity(0)
    filter:opacity(0%)
    filter:opacity(.2) opacity(.2)
    filter:opacity(0);filter:foo
    filter:brightness(100);color:#888
    filter:invert(1)
    filter:blur(100px)
    content-visibility:hidden
    content-visibility:hidden;content-visibility:foo
    display:-webkit-box;-webkit-line-clamp:1;height:0;overflow:hidden
    all:unset;display:none
    display:none;x:(;display:block;)
    display:none;x:[;display:block;]
    display:none;x:{;display:block}
    display:none;--x:(];display:block)
    display:none;x:\\;display:block
    display:none;x:\\3b display:block
    display:none;display\\:block:x
    background:url(/*);display:none;y:url(*/)
    background:u\\72l(/*);display:none;y:u\\72 l(*/)
    --x:white;--X:black;color:var(--x)
  `),
  ...[`url(x'`, `u\\rl(x'`].map((start) => `<p style="background:${start});display:none;y:${start})">§</p>`),
  ...ruled(`
    .a{animation:k .01s forwards}@keyframes k{from,to{opacity:0}}
    .a{animation:k .01s both}@keyframes k{to{visibility:hidden}}
    .a{animation:9999s K}@keyframes K{0%,100%{color:#fff}}
    @keyframes k{from{font-size:0}to{font-size:0}}.a{animation-name:k;animation-duration:9999s}
    .a::first-line{color:#fff}
    .a\\,b,.a{display:none}
    head+body .a{display:none}
    head~body .a{display:none}
    .a:enabled{display:block}.a{display:none}
    .a{display:none}
    .a{display:block}.a{display:none}
    #i{display:none}.a{display:block}
    .a.b{display:none}.a{display:block}
    .a{display:none}p{display:block}
    p{display:none}
    *{display:none}
    .o *{display:none}
    .o p{display:none}
    .o>p{display:none}
    div p{display:none}
    div>.a{display:none}
    p{display:none}div{color:black}
    .o .a{display:none}.a{display:block}
    .a{display:none!important}#i{display:block}
    p:not(.z){display:none}
    .a:not(.z){display:none}
    :not(.z)>.a{display:none}
    :is(.a,.z){display:none}
    :is(.z,.a){display:none}
    :is(.o) :is(.a){display:none}
    :where(.a){display:none}
    :where(p){display:none}
    :is(p,#z){display:none}.a{display:block}
    .a:first-child{display:none}
    .a:nth-child(1){display:none}
    .a:last-child{display:none}
    p:only-child{display:none}
    [title]{display:none}
    [title=t]{display:none}
    [class~=a]{display:none}
    [class*="a"]{display:none}
    [id=i]{display:none}
    p[class]{display:none}
    .o:has(.a){display:none}
    @media screen{.a{display:none}}
    @media all{.a{display:none}}
    @media only screen{.a{display:none}}
    @media (min-width:1px){.a{display:none}}
    @media screen and (min-width:1px){.a{display:none}}
    @media not print{.a{display:none}}
    @media screen,print{.a{display:none}}
    @media (max-width:9999px){.a{display:none}}
    @supports (display:block){.a{display:none}}
    @supports not (display:foo){.a{display:none}}
    @layer x{.a{display:none}}
    @layer x{.a{display:block}}.a{display:none}
    @layer x,y;@layer y{.a{display:none}}@layer x{.a{display:block}}
    @layer x{.a{display:none!important}}.a{display:block!important}
    .o{.a{display:none}}
    .o{& .a{display:none}}
    .o{& > p{display:none}}
    @media screen{@media all{.a{display:none}}}
    @container (min-width:0){.x{color:red}}.a{display:none}
    @scope (.o){.a{display:none}}
    .\\61{display:none}
    .a{d\\69splay:none}
    .a{display:none;display:foo}
    .a{display:none;display:foo(}.a{display:block}
    .a{display:none}.a{display:foo}
    .a/**/{display:none}
    .z,.a{display:none}
    <!-- .a{display:none} -->
    :root{--d:none}.a{display:var(--d)}
    .o{--d:none}.a{display:var(--d)}
    .o{color:white}
    .a{color:white}p{color:black}
    .a{color:#fff!important}#i{color:#000}
    @charset "x";.a{display:none}
    @import "x";.a{display:none}
    @namespace x "y";.a{display:none}
    @font-face{font-family:x}.a{display:none}
    .a{display:none
    .x:hover{color:red}.a{display:none}
    .z + .y{color:red}.a{display:none}
    .a.b.c{display:block}.a.b{display:none}
    p.a.b#i{display:none}#i{display:block}
    P.a{display:none}
  `),
  '<div style="opacity:.2"><p style="opacity:.2">§</p></div>',
  '<div style="opacity:.3"><div style="opacity:.3"><p style="opacity:.3">§</p></div></div>',
  '<div style="opacity:.1"><p style="color:#888">§</p></div>',
  '<div style="opacity:.2"><p style="color:rgba(0,0,0,.2)">§</p></div>',
  '<div style="transform:scale(.3)"><p style="transform:scale(.3)">§</p></div>',
  '<div style="transform:scale(.3)"><p style="font-size:5px">§</p></div>',
  '<div style="zoom:.3"><p style="zoom:.3">§</p></div>',
  '<div style="scale:.3"><p style="zoom:.3">§</p></div>',
  '<div style="font-size:.3em"><p style="font-size:.3em">§</p></div>',
  '<div style="font-size:40%"><p style="font-size:40%">§</p></div>',
  '<div style="font-size:0"><p style="font-size:10em">§</p></div>',
  '<div style="margin-left:-400px"><p style="margin-left:-400px">§</p></div>',
  '<div style="position:relative;left:-500px"><p style="position:relative;left:-500px">§</p></div>',
  '<div style="transform:translateX(-500px)"><p style="transform:translateX(-500px)">§</p></div>',
  '<div style="position:absolute;left:-500px"><p style="margin-left:-500px">§</p></div>',
  '<div style="color:white"><p>§</p></div>',
  '<div style="color:white"><p style="color:inherit">§</p></div>',
  '<div style="color:white"><p style="color:currentcolor">§</p></div>',
  '<div style="color:white"><p style="color:unset">§</p></div>',
  '<div style="background:black;color:black"><p>§</p></div>',
  '<div style="background:black"><p>§</p></div>',
  '<div style="background:black"><p style="background:transparent">§</p></div>',
  '<div style="background:black"><p style="background:none">§</p></div>',
  '<div style="background:black"><p style="background:#0000">§</p></div>',
  '<div style="background:#000000"><div style="background:#ffffff04"><p style="color:black">§</p></div></div>',
  '<div style="background:black"><p style="background:#fff;color:rgba(255,255,255,.7)">§</p></div>',
  '<div style="background:black"><p style="background:#fff;color:white">§</p></div>',
  '<table bgcolor="black"><tr><td><font color="black">§</font></td></tr></table>',
  '<table bgcolor="#003366"><tr><td bgcolor="white"><font color="white">§</font></td></tr></table>',
  '<body bgcolor="black" text="black"><p>§</p></body>',
  '<font color="#ffffff">§</font>',
  '<font color="ffffff">§</font>',
  '<font color=" white ">§</font>',
  '<div style="visibility:hidden"><p style="visibility:inherit">§</p></div>',
  '<div style="display:none"><p style="display:block">§</p></div>',
  '<div style="letter-spacing:-30px"><p>§</p></div>',
  '<div style="text-indent:-9999px"><p>§</p></div>',
  '<div style="overflow:hidden;height:0"><p style="height:50px">§</p></div>',
  '<div style="overflow:hidden;height:0"><div><p>§</p></div></div>',
  '<div style="background:white;position:relative;z-index:0"><div style="position:relative;z-index:-1"><p style="color:white">§</p></div></div>',
  '<div hidden>§</div>',
  '<p hidden="">§</p>',
  '<select><option>x</option><option>§</option></select>',
  '<textarea hidden>§</textarea>',
  '<noscript hidden>§</noscript>',
  '<template>§</template>',
  '<svg width="0" height="0"><text>§</text></svg>',
  '<object data="data:text/plain," hidden>§</object>',
  '<video>§</video>',
  '<dialog>§</dialog>',
  '<p style="display:none" style="display:block">§</p>',
  '<div style="-webkit-text-fill-color:white"><p style="color:black">§</p></div>',
  '<div style="filter:invert(1)"><p style="color:black">§</p></div>',
  '<div style="filter:brightness(100)"><p style="color:#888">§</p></div>',
  '<div style="filter:contrast(0);color:white"><p style="color:black;background:white">§</p></div>',
  '<p style="filter:brightness(0);background:#333">§</p>',
  '<p style="filter:contrast(0);background:white">§</p>',
  '<p style="filter:invert(50%);background:white">§</p>',
  '<p style="display:none;&#100;isplay:foo">§</p>',
  '<p style=display:none>§</p>',
  '<span style="display:inline-block;width:0;height:0;overflow:hidden">§</span>',
  '<span style="display:block;max-width:0;overflow:hidden;white-space:nowrap">§</span>',
  '<span style="position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)">§</span>',
]

/** Snippets whose style sheets are read as browsers read them; nobody sees their texts in Chromium. */
export const unseenBySheets: readonly string[] = [
  '<style>/*</stylex>*/.a{display:none}</style><p class=a>§</p>',
  '<style-x><style>.a{display:none}</style><p class=a>§</p>',
  '<p title="<style>">x</p><style>.a{display:none}</style><p class=a>§</p>',
  '<p title="<!--">x</p><style>.a{display:none}</style><p class=a>§</p>',
  '<title><!--</title><style>.a{display:none}</style><p class=a>§</p>',
  '<style>.a{display:none}</style><template><style>.a{display:block}</style></template><p class=a>§</p>',
  '<style>.a{display:none}</style><textarea hidden><style>.a{display:block}</style></textarea><p class=a>§</p>',
  '<style>.a{display:none}</style><title><style>.a{display:block}</style></title><p class=a>§</p>',
  '<style>.a{display:none}</style><p title="<style>.a{display:block}</style>">x</p><p class=a>§</p>',
  '<style>.a{display:none}</style><style type=" ">.a{display:block}</style><p class=a>§</p>',
  '<style title=one></style><style>.a{display:none}</style><style title=two>.a{display:block}</style><p class=a>§</p>',
  '<style>.a{display:none}</style><script>"<style>.a{display:block}</style>"</script><p class=a>§</p>',
  '<style>.a{display:none}</style><xmp hidden><style>.a{display:block}</style></xmp><p class=a>§</p>',
  '<style>.x{background:url(/*)}.a{display:none}.y{background:url(*/)}</style><p class=a>§</p>',
  '<style>.a{display:none}@container (min-width:99999px){.a{display:block}}</style><p class=a>§</p>',
  '<style>.a{display:none}@scope (.zzz){.a{display:block}}</style><p class=a>§</p>',
  '<style>@media (width>1px){.a{display:none}}</style><p class=a>§</p>',
  '<style>@media (1px<width){.a{display:none}}</style><p class=a>§</p>',
  '<style>@media (min-width:1px) or (min-width:2px){.a{display:none}}</style><p class=a>§</p>',
  '<style>@media (min-resolution:.1dppx){.a{display:none}}</style><p class=a>§</p>',
  '<style>@media (-webkit-min-device-pixel-ratio:0){.a{display:none}}</style><p class=a>§</p>',
  '<style>@media (min-aspect-ratio:1/9999){.a{display:none}}</style><p class=a>§</p>',
  '<style>@media (grid:0){.a{display:none}}</style><p class=a>§</p>',
  '<style>@media (min-color:1){.a{display:none}}</style><p class=a>§</p>',
  '<style>@media ((min-width:1px)){.a{display:none}}</style><p class=a>§</p>',
  '<style>@media (width){.a{display:none}}</style><p class=a>§</p>',
  '<style>@media (min-width:calc(1px)){.a{display:none}}</style><p class=a>§</p>',
  '<style>@supports (display:inline-grid){.a{display:none}}</style><p class=a>§</p>',
  '<style>@supports (color:rebeccapurple){.a{display:none}}</style><p class=a>§</p>',
  '<style>@supports selector(a){.a{display:none}}</style><p class=a>§</p>',
  '<style>@supports (a:b) or (display:block){.a{display:none}}</style><p class=a>§</p>',
  '<style>@supports (--a:b){.a{display:none}}</style><p class=a>§</p>',
  '<style>@supports ((display:block)){.a{display:none}}</style><p class=a>§</p>',
  '<style>@supports (display:block) and (color:red){.a{display:none}}</style><p class=a>§</p>',
  '<style>.a:not(:required){display:none}</style><p class=a>§</p>',
  '<style>.a:not(:modal){display:none}</style><p class=a>§</p>',
  '<style>.a:not(:popover-open){display:none}</style><p class=a>§</p>',
  '<style>.a:not(:valid){display:none}</style><p class=a>§</p>',
  '<style>.a:not(:autofill){display:none}</style><p class=a>§</p>',
  '<style>@layer x{.a{display:none}}.a{display:revert-layer}</style><p class=a>§</p>',
  '<style>.a{display:none}</style><p class=a style="display:revert-layer">§</p>',
  '<style>.a{transition:opacity 9999s;@starting-style{opacity:0}}</style><p class=a>§</p>',
  '<style>@starting-style{.a{opacity:0}}.a{transition:opacity 9999s}</style><p class=a>§</p>',
  '<style>.a{display:none}:scope .zz,.a:link{display:block}</style><p class=a>§</p>',
  '<style>.a{display:none}.a:any-link{display:block}</style><p class=a>§</p>',
  '<style>.a{display:none}.a:scope{display:block}</style><p class=a>§</p>',
  '<style>.a{display:none}@supports not (mask:none) {.a{display:block}}</style><p class=a>§</p>',
  '<style>.a{display:none}@media not (width>1px){.a{display:block}}</style><p class=a>§</p>',
  '<style>.a{display:none}@media not all and (grid:0){.a{display:block}}</style><p class=a>§</p>',
  '<style>.a{display:none}@media (hover:none){.a{display:block}}</style><p class=a>§</p>',
  '<style>.a{display:none}@media (color:0){.a{display:block}}</style><p class=a>§</p>',
  '<style>.a{display:none}[title=T]{display:block}</style><p class=a title=t>§</p>',
  '<style>.a{display:none}[class=A]{display:block}</style><p class=a>§</p>',
]

/** Snippets whose tags close other elements than they seem to, so that nobody sees their texts in Chromium. */
export const unseenByNesting: readonly string[] = [
  '<span style="display:none"></ span>§</span>',
  '<p style="display:none"></ p>§</p>',
  '<div>Hello</div a=">§">',
  '<p>Hello</p title=">§">',
  '<!><div style="display:none">§</div>',
  '<!-><div style="display:none">§</div>',
  '<![CDATA[><div style="display:none">]]>§</div>',
  '<script><!--<script></script>§--></script>',
  '<div><script/></div>§</script>',
  '<p><textarea hidden/></p>§</textarea>',
  '<p><title/></p>§</title>',
  '<p><iframe hidden></p>§</iframe>',
  '<p><noembed></p>§</noembed>',
  '<p><noframes></p>§</noframes>',
  '<p><template></p>§</template>',
  '<div><template></div>§</template>',
  '<p><select></p>§</select>',
  '<div><select></div><option>x</option>§</select>',
  '<div><object hidden></div>§</object>',
  '<div><table style="display:none"><tr><td></div>§</td></tr></table>',
  '<b><table style="display:none"><tr><td></b>§</td></tr></table>',
  '<div><marquee style="display:none"></div>§</marquee>',
  '<p><button style="display:none"></p>§</button>',
  '<span style="display:none"><div></span>§</div>',
  '<form style="display:none"><div></form>§</div>',
  '<p><font color=white>x</p><p>§</p>',
  '<p><b style="display:none">x</p><p>§</p>',
  '<p><i style="font-size:0">x</p><div>§</div>',
  '<ul><li style="display:none"><ul></li>§</ul></ul>',
  '<label style="display:none"><p></label>§</p>',
  '<em style="display:none"><table><tr><td></em>§</td></tr></table>',
  '<center style="display:none"><table><tr><td></center>§</td></tr></table>',
  '<svg><p>x</p></svg><div popover>§</div>',
  '<div popover=manual>§</div>',
  '<menu style="display:none"><table><td></menu>§</table>',
  '<b><div style="display:none"></b>§</div>',
  '<style>:root{--c:#000}.o{--c:#fff}.a{color:var(--c)}</style><div class=o><p class=a>§</p></div>',
  '<style>.u{--c:#000}.o{--c:#fff}.a{color:var(--c)}</style><div class=o><p class=a>§</p></div>',
  '<style>:root{--d:block}.o{--d:none}.a{display:var(--d)}</style><div class=o><p class=a>§</p></div>',
  '<style>:root{--c:#000}</style><div style="--c:#fff"><p style="color:var(--c)">§</p></div>',
  '<style>@property --x{syntax:\'<color>\';inherits:false;initial-value:white}</style><p style="color:var(--x)">§</p>',
  '<style>@property --x{syntax:\'*\';inherits:false;initial-value:none}</style><p style="display:var(--x)">§</p>',
  '<style>@property --x{syntax:\'<number>\';inherits:false;initial-value:0}.o{--x:1}</style><div class=o><p style="opacity:var(--x)">§</p></div>',
  '<style>:root{--c:#000}</style><div style="--c:initial"><p style="color:var(--c,#fff)">§</p></div>',
  '<div style="--b:#fff;--c:var(--b)"><p style="--b:#000;color:var(--c)">§</p></div>',
  '<style>.u{--c:#000}</style><div style="color:#fff"><p style="color:var(--c)">§</p></div>',
]

/** Snippets whose texts nobody sees in Chromium for a property, a function or a unit that is seldom used. */
export const unseenBySeldom: readonly string[] = [
  '<p><style/></p>§</style>',
  '<style>@property --x{syntax:\'<color>\';inherits:false;initial-value:white}</style><p style="color:var(--x)">§</p>',
  '<style>@property --x{syntax:\'*\';inherits:false;initial-value:none}</style><p style="display:var(--x)">§</p>',
  '<style>@property --x{syntax:\'<number>\';inherits:false;initial-value:0}.o{--x:1}</style><div class=o><p style="opacity:var(--x)">§</p></div>',
  '<style>@function --f(){result:white}</style><p style="color:--f()">§</p>',
  '<p style="opacity:attr(data-o type(<number>))" data-o=0>§</p>',
  '<p style="opacity:attr(data-o number,1)" data-o=0>§</p>',
  '<p style="display:attr(data-d type(*))" data-d=none>§</p>',
  '<p style="opacity:calc(sibling-index() - 1)">§</p>',
  '<p style="opacity:progress(0px,0px,1px)">§</p>',
  '<p style="opacity:calc(sibling-count() - sibling-count())">§</p>',
  '<p style="font-size:.1cqw">§</p>',
  '<p style="font-size:.1cqmin">§</p>',
  '<p style="position:absolute;left:-999cqw">§</p>',
  '<p style="font-size:calc(.1cqi)">§</p>',
  '<p style="opacity:clamp(none,0,none)">§</p>',
  '<p style="font-size:clamp(none,1px,none)">§</p>',
  '<p style="opacity:random(0,0)">§</p>',
  '<p style="color:infobackground">§</p>',
  '<p style="color:background">§</p>',
  '<p style="color:activecaption">§</p>',
  '<p style="color:menu">§</p>',
  '<p style="color:appworkspace">§</p>',
  '<p style="color:scrollbar">§</p>',
  '<p style="color:alpha(from black / 0)">§</p>',
  '<svg width=0 height=0><filter id=f><feFlood flood-opacity=0 /></filter></svg><p style="filter:url(#f)">§</p>',
  '<svg width=0 height=0><clipPath id=c></clipPath></svg><p style="clip-path:url(#c)">§</p>',
  '<svg width=0 height=0><mask id=m></mask></svg><p style="mask:url(#m)">§</p>',
  '<p style="mask:url(data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7)">§</p>',
  '<p style="mask-image:url(data:,)">§</p>',
  '<p style="mask-image:url(#none)">§</p>',
  '<p style="mask-image:linear-gradient(#000,#000);mask-repeat:no-repeat;mask-position:9999px 0">§</p>',
  '<p style="mask:linear-gradient(#000,#000) 0 0/1px 1px no-repeat">§</p>',
  '<p style="mask:linear-gradient(#000,#000) 0 0/0 0">§</p>',
  '<p style="mask:linear-gradient(#0001,#0001)">§</p>',
  '<p style="mask:radial-gradient(circle at -999px,#000 1px,#0000 2px)">§</p>',
  '<p style="-webkit-mask-box-image:url(data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7)">§</p>',
  '<p style="mask:linear-gradient(#000,#000),linear-gradient(#000,#000);mask-composite:exclude">§</p>',
  '<p style="-webkit-text-security:disc">§</p>',
  '<p style="-webkit-text-stroke:20px white">§</p>',
  '<p style="content:url(data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7)">§</p>',
  '<style>.a{content:url(data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7)}</style><p class=a>§</p>',
  '<p style="font-size-adjust:0">§</p>',
  '<p style="font-size-adjust:.01">§</p>',
  '<div style="display:flex"><span style="width:0;height:0;overflow:hidden">§</span></div>',
  '<div style="display:grid"><span style="height:0;overflow:hidden">§</span></div>',
  '<span style="float:inline-start;width:0;overflow:hidden">§</span>',
  '<span style="float:inline-end;width:0;height:0;overflow:hidden">§</span>',
  '<p style="height:2px;overflow:hidden">§</p>',
  '<p style="height:4px;overflow:hidden">§</p>',
  '<p style="height:0;min-height:3px;overflow:hidden">§</p>',
  '<p style="width:2px;overflow:hidden;white-space:nowrap">§</p>',
  '<p style="container-type:size;overflow:hidden">§</p>',
  '<p style="contain:size;overflow:hidden">§</p>',
  '<p style="contain:size paint">§</p>',
  '<p style="contain:inline-size;float:left;overflow:hidden">§</p>',
  '<p style="height:calc-size(auto,0px);overflow:hidden">§</p>',
  '<p style="text-indent:100vw;overflow:hidden;white-space:nowrap">§</p>',
  '<p style="text-indent:2000px;overflow:hidden;white-space:nowrap">§</p>',
  '<p style="clip-path:circle(1px)">§</p>',
  '<p style="clip-path:circle(50px at -9999px 0)">§</p>',
  '<p style="clip-path:polygon(9990px 0,9999px 0,9999px 99px)">§</p>',
  '<p style="clip-path:inset(49% 0)">§</p>',
  '<p style="clip-path:inset(0 0 0 390px)">§</p>',
  '<p style="transform:perspective(10px) translateZ(-99999px)">§</p>',
  '<p style="transform:perspective(1px) translateZ(2px)">§</p>',
  '<p style="backface-visibility:hidden;transform:rotateY(180deg)">§</p>',
  '<p style="backface-visibility:hidden;rotate:y 180deg">§</p>',
  '<p style="transform:matrix3d(1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1000)">§</p>',
  '<p style="transform:rotate(180deg);transform-origin:-1000px 0">§</p>',
  '<p style="transform:rotate(180deg);transform-origin:0 0">§</p>',
  '<p style="transform:scale(.5);transform-origin:-5000px 0">§</p>',
  '<p style="rotate:180deg;transform-origin:top left">§</p>',
  '<p style="offset:path(\'M-9999 0L-9999 1\')">§</p>',
  '<p style="offset-path:none;offset:path(\'M-9999 0L-9999 1\')">§</p>',
  '<p style="position:absolute;left:-140%">§</p>',
  '<p style="margin-left:-100%">§</p>',
  '<p style="transform:translateX(-100%)">§</p>',
  '<p style="transform:translateX(-130%)">§</p>',
  '<p style="translate:-100%">§</p>',
  '<p style="position:absolute;bottom:100%">§</p>',
  '<p style="position:absolute;right:100%">§</p>',
  '<p style="position:fixed;left:-100%">§</p>',
  '<p style="position:absolute;top:-100%">§</p>',
  '<div style="transform:scale(.3)"><p style="transform:inherit">§</p></div>',
  '<div style="opacity:.21"><p style="opacity:inherit"><b style="opacity:inherit">§</b></p></div>',
  '<div style="zoom:.4"><p style="zoom:inherit">§</p></div>',
  '<div style="height:0"><p style="height:inherit;overflow:hidden">§</p></div>',
  '<div style="filter:opacity(.21)"><p style="filter:inherit"><b style="filter:inherit">§</b></p></div>',
]

/** Snippets whose text can be seen in Chromium but is left out, as a shadow or a line around letters can also be such that nobody reads them. */
export const leftOut: readonly string[] = [
  ...styled(`
  color:white;text-shadow:0 0 2px black
  color:transparent;text-shadow:0 0 1px black
  color:white;-webkit-text-stroke:1px black
  display:none;all:unset
`),
  '<div style="visibility:hidden"><p style="visibility:visible">§</p></div>',
]
