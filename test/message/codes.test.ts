import { expect, test } from 'vitest'
import { codesIn } from '../../src/message/codes.ts'
import { markdownOf } from '../../src/message/markdown.ts'

// subject, text, codes
const announced: [string, string, string[]][] = [
  ['123456 is your Acme code', '', ['123456']],
  ['Your Acme verification code: 004512', 'Hi', ['004512']],
  ['Acme', 'Your PIN is 4821', ['4821']],
  ['Acme', 'Your code is 2024', ['2024']],
  ['Acme', 'PIN: 1987', ['1987']],
  ['', 'Use code 889112 to log in.', ['889112']],
  ['', "889112 is your login code for Acme. Don't share it. @acme.test #889112", ['889112']],
  ['', '<#> 553-201 is your WhatsUp code', ['553201']],
  ['', 'Your WhatsUp code: 553-201\nYou can also tap on this link to verify your phone: v.whatsup.test/553201', ['553201']],
  ['', 'Telegrim code 48213', ['48213']],
  ['', 'Login code: 48213. Do not give this code to anyone', ['48213']],
  ['', 'G-884213 is your Gogol verification code.', ['884213']],
  ['', 'FB-48213 is your Facebuk confirmation code', ['48213']],
  ['Just one more step', 'You may be asked to enter this confirmation code: 48213', ['48213']],
  ['48213 is your confirmation code', 'Hi Robin,\n\nYour confirmation code:\n\n48213', ['48213']],
  ['Confirm your e-mail', 'Account confirmation code\n\n**A7Q9XK**\n\nIt expires in 10 minutes.', ['A7Q9XK']],
  ['', 'Ihre mTAN lautet 739201 fuer Ihre Ueberweisung ueber 1.250,00 EUR auf Konto DE..4471', ['739201']],
  ['', 'TAN: 448120 gilt nur für Auftrag 20.11.2026', ['448120']],
  ['', '【某某】您的验证码是123456，5分钟内有效，请勿泄露。', ['123456']],
  ['', '验证码：8841，请于30分钟内输入', ['8841']],
  ['', '【某宝】553012（登录验证码），请勿告诉他人', ['553012']],
  ['', '[네이바] 인증번호 [482913]를 입력해주세요.', ['482913']],
  ['', '[Web발신]\n[카카]인증번호는 482913 입니다', ['482913']],
  ['', '認証番号は 7391 です。有効期限は10分です。', ['7391']],
  ['', 'ワンタイムパスワード\n\n  84920175\n\n有効期限 2026/11/20 19:30', ['84920175']],
  ['', 'Код: 4821. Никому не говорите.', ['4821']],
  ['', '4821 — ваш код для входа', ['4821']],
  ['', 'Tek kullanımlık şifreniz: 558210', ['558210']],
  ['', 'Onay kodunuz 558210 olarak belirlendi', ['558210']],
  ['', 'Mã OTP của bạn là 771204', ['771204']],
  ['', 'Kode verifikasi Anda adalah 771204', ['771204']],
  ['', 'รหัส OTP ของคุณคือ 771204', ['771204']],
  ['', 'आपका OTP 771204 है', ['771204']],
  ['', 'کد تایید شما: ۱۲۳۴۵۶', ['123456']],
  ['', 'Your Uber code is 4821. Never share this code. Reply STOP ALL to unsubscribe.', ['4821']],
  ['Confirm your account', 'Please enter this code:\n\n**7 3 9 2 0 1**\n', ['739201']],
  [
    'Confirm your account',
    'Please enter this code in the app to continue with the sign up process and to secure your account from others:\n\n739201\n\nThe code expires on 2026-11-20.',
    ['739201'],
  ],
  ['Sign in', 'Hello Robin,\n\n739201\n\nis your verification code.', ['739201']],
  ['Your sign-in code', 'Copy and paste this:\n\nABC-DEF-GHI\n\nThanks', ['ABC-DEF-GHI']],
  ['Your code', 'Your security code is: 7QK2-M9PX', ['7QK2-M9PX']],
  ['', 'Enter code A1B2C3 to continue', ['A1B2C3']],
  ['', 'Your verification code is sent to +1 415 555 0100. Code: 902113', ['902113']],
  ['Your Amazin order', 'Order 113-4820193-2201933 shipped. Your delivery OTP is 482910', ['482910']],
  ['', 'Your one-time password (valid for 10 minutes): 774411', ['774411']],
  ['', 'Steam Gard code\n\nKX7QP\n', ['KX7QP']],
  ['', 'Here is the login code you will need:\n\nK9PXW\n', ['K9PXW']],
  ['', 'code:12345', ['12345']],
  ['', 'Codul tău de verificare este 55120', ['55120']],
  ['', 'Din engångskod är 550 128', ['550128']],
  ['', 'Vahvistuskoodi: 550128', ['550128']],
  ['', 'Ο κωδικός επαλήθευσης είναι: 550128', ['550128']],
  ['', 'Voici votre code : 550128', ['550128']],
  ['', 'Votre code de validation est le 550128.', ['550128']],
  ['', 'Su clave dinámica es 550128', ['550128']],
  ['', 'Seu token: 550128', ['550128']],
  ['', 'Il tuo codice OTP è 550128', ['550128']],
  ['', 'Meeting ID: 845 2213 9921\nPasscode: 884213', ['884213']],
  [
    'Your login code for Linear',
    '# Your login code for Linear\n\n[Login to Linear](https://l.test/x)\n\nThis link and code will only be valid for the next 5 minutes. If the link does not work, you can use the login verification code directly:\n\nxkqpw-tmzrd\n\nLinear',
    ['xkqpw-tmzrd'],
  ],
  ['OpenAY - Verify your email', 'Enter this temporary verification code to continue:\n\n884 120', ['884120']],
  [
    'Your ChatGPD code is 482910',
    'We noticed a suspicious log-in on your account. If that was you, enter this code:\n\n482910',
    ['482910'],
  ],
  [
    'Amazin: sign-in attempt',
    'Someone who knows your password is attempting to sign-in to your account.\n\nWhen: Nov 20, 2026 10:12 AM PST\nDevice: Chrome\nNear: Oregon, US\n\nIf this was you, your verification code is:\n\n558 210\n\nIf not: deny',
    ['558210'],
  ],
  [
    'Microsof account security code',
    "Please use the following security code for the Microsof account ro**n@box.example.\n\nSecurity code: 0048213\n\nIf you don't recognize",
    ['0048213'],
  ],
  [
    'Microsof account security info',
    'Single-use code\nWe received your request for a single-use code to use with your account.\n\nYour single-use code is: 884213\n\nOnly enter this code on an official website.',
    ['884213'],
  ],
  [
    'Your Appel ID code',
    'Your verification code\n\nRobin,\n\nEnter this code to verify your identity:\n\n482-910\n\nCopyright © 2026 Appel Distribution International Ltd., Hollyhill Industrial Estate, Cork, Ireland.',
    ['482910'],
  ],
  ['PayPol: 482910 is your security code', '', ['482910']],
  [
    'Code de vérification',
    'Bonjour,\nPour confirmer votre identité, saisissez le code suivant : 48 29 10\nSNCF, 2 place aux Étoiles, 93200 Saint-Denis',
    ['482910'],
  ],
  ['Bestellung', 'Ihre PLZ: 10115. Bankleitzahl 10050000. Ihr Code zum Abholen: 7731', ['7731']],
  ['Dein Code', 'Hallo,\n\ndein Anmeldecode:\n\n  7 7 3 1 0 4\n\nDer Code ist bis 10:45 Uhr gültig.', ['773104']],
  ['【重要】', 'お客様の確認コードは「483920」です。', ['483920']],
  ['【某某】', '验证码为：A8K2P9，有效期10分钟。', ['A8K2P9']],
  ['보안', '[은행] 보안코드: 771-204 (유효시간 3분)', ['771204']],
  ['Вход', 'Код для входа в аккаунт: 771204. Действителен до 10:45', ['771204']],
  ['', 'Код подтверждения 771204', ['771204']],
  ['رمز', 'رمز الدخول لمرة واحدة: 771204 صالح لمدة 5 دقائق', ['771204']],
  ['קוד', 'קוד האימות: 771204', ['771204']],
  ['Podziękowanie', 'Kod pocztowy 00-238, NIP 5252344078. Twój kod: 771 204', ['771204']],
  ['', 'Password: hunter22 Code: 48213', ['48213']],
  ['', 'Booking code: K7PQ2M\nYour check-in PIN: 4821', ['4821']],
  ['', 'Your parcel locker pickup code is 482913. Locker 12, 4821 Oak Street.', ['482913']],
  ['', 'Your code:\n482913\nOrder number:\n9938271', ['482913']],
  ['', 'Order number:\n9938271\nYour code:\n482913', ['482913']],
  ['', 'Enter 4821 in the app to verify your e-mail address. Ticket 99120.', ['4821']],
  ['', 'OTP for transaction of Rs. 2500.00 at SHOP is 482913. Do not share it.', ['482913']],
  ['', '482913 is the OTP for A/c No. XX4821. Do not share it.', ['482913']],
  ['', 'OTP for A/c No. XX4821 is 482913.', ['482913']],
  ['', 'OTP for txn of INR 12500.00 at SHOP on card XX4821 is 773104. Valid till 20-11-2026 10:45.', ['773104']],
  ['', '773104 is the OTP for transaction of Rs 12500 on card ending 4821', ['773104']],
  ['', 'Dear customer, 773104 is SECRET OTP for login', ['773104']],
  ['', 'Your verification code is: 773104\n\nYour verification code is: 773104', ['773104']],
  ['Verify', 'Your code is **773104**.', ['773104']],
  ['Verify', '| Code | 773104 |', ['773104']],
  ['Verify', 'Code | 773104\nExpires | 2026-11-20\nIP | 203.0.113.9', ['773104']],
]

const other: [string, string][] = [
  ['', 'Your promo code SPRING24 is valid until 2027'],
  ['', 'Use promo code 123456 at checkout'],
  ['', 'Your order code is 48213'],
  ['Reservation confirmed for Lisbon', 'Confirmation code: HMX482KQ9'],
  ['Your flight to Lisbon', 'Hi Robin,\n\nConfirmation code:\n\nK7PQ2M'],
  ['', 'Hotel booking confirmation code: 482913'],
  ['', 'ZIP code: 94103'],
  ['', 'Join: https://zoom.test/j/84522139921?pwd=111222\nMeeting ID: 845 2213 9921'],
  ['', 'We never ask for your PIN or password. Call 1800 or visit 12345 Main Street.'],
  [
    '',
    "If you didn't request this code, please ignore this email.\n\nAcme Inc.\n548 Market St, PMB 72879\nSan Francisco, CA 94104",
  ],
  ['', 'If you did not request a code, contact us.\n\n94104 San Francisco'],
  ['', 'Two-factor codes keep you safe.\n\n2026 Acme Inc. All rights reserved'],
  ['', 'Your code has been redeemed 10000 times'],
  ['', 'error code: 5001'],
  ['', 'The code is 20 characters'],
  ['', 'Your verification code will expire at 1830 on 20.11.2026'],
  ['', 'Your verification code was sent to your phone ending in 4821'],
  ['', 'Sort code 20-00-00, account 55779911'],
  ['', 'Your verification is complete. Reference: 48213'],
  ['', 'The PIN for case 48213 was changed'],
  ['', 'QR code attached. Gate 1420.'],
  ['', 'Hi, I pushed code to branch 48213 yesterday'],
  ['', 'see line 48213 of the code'],
  ['', 'The building code 2018 requires'],
  ['Weekly digest', '10234 people wrote code in 2026; 50000 PRs'],
  ['', 'Country code +49, phone 1701234567'],
  ['', 'Your gift card code: ABCD-EFGH'],
  [
    'Notion login code',
    "Login with a magic link\n\nOr, copy and paste this temporary login code:\n\nsparox-onset-quiet-lemon\n\nIf you didn't try to login, you can ignore",
  ],
  ['Votre commande 4821-3390', 'Votre numéro de commande est 48213390. Code postal 75001. Votre code promo : NOEL2026'],
  ['ご注文', 'ご注文番号：20261120-48213\nお届け予定日：2026年11月24日\n合計 12,800円'],
  ['订单', '您的订单号20261120889 已发货，快递单号 SF1234567890，取件码 8-2-4021'],
  ['Заказ', 'Ваш заказ 48213 готов. Код товара 778812. Тел. 8 495 123-45-67'],
  ['', 'Hi team,\n\nthe new promo codes are 10203, 40506 and 70809.'],
  ['', 'Please review code changes 48213..48290'],
  [
    'Statement',
    'Account number 10293847. Sort code 204060. Balance 4821.33. Your security is our priority: never share your PIN. 0345 734 5345',
  ],
  ['Newsletter', 'How to write code faster\n\n10000 developers\n\n2026 edition\n\n548 Market Street'],
  ['', 'This code expires in 600 seconds.\n\n1600 Parkway Drive\nMountain View'],
  ['', 'Thank you for verifying. Customer no. 482913. Have your PIN ready when you call 0800 482913.'],
  ['', 'Codes in this mail: none. Reference number\n\n48213390\n'],
]

test.each(announced)('%j %j', (subject, text, codes) => {
  expect(codesIn(subject, text)).toEqual(codes)
})

test.each(other)('no code in %j %j', (subject, text) => {
  expect(codesIn(subject, text)).toEqual([])
})

test('the best comes first, each once, five at most', () => {
  expect(codesIn('482913 is your code', 'Your code: 482913\n\nOld code: 100200')).toEqual(['482913', '100200'])
  const many = Array.from({ length: 9 }, (_, index) => `Your code is 48291${index}.`).join('\n')
  expect(codesIn('', many)).toHaveLength(5)
})

test('a code drawn one digit below the other is one code', () => {
  expect(codesIn('', 'Your code:\n4\n8\n2\n9\n1\n3\n\nThanks')).toEqual(['482913'])
})

test('every other kind of digit reads as ASCII', () => {
  expect(codesIn('', 'code: ４８２９１３')).toEqual(['482913'])
  expect(codesIn('', 'رمز: ٤٨٢٩١٣')).toEqual(['482913'])
  expect(codesIn('', 'کد: ۴۸۲۹۱۳')).toEqual(['482913'])
})

test('invisible characters inside a code do not part it', () => {
  expect(codesIn('', 'Your code is 482\u200b913')).toEqual(['482913'])
})

const inHtml: [string, string, string[]][] = [
  [
    'Your code',
    '<p>Your verification code is</p><table><tr><td><table><tr><td><div>4</div></td><td><div>8</div></td><td><div>2</div></td><td><div>9</div></td><td><div>1</div></td><td><div>3</div></td></tr></table></td></tr></table><p>Thanks</p>',
    ['482913'],
  ],
  ['Login', '<p>Your code:</p><a href="https://a.test/c?x=482913" style="padding:10px">482913</a>', ['482913']],
  ['Login', '<p>Your code is <b>482</b>&nbsp;<b>913</b>.</p>', ['482913']],
  ['Login', '<div>Code: <b>ABC123</b></div>', ['ABC123']],
  ['Login', '<h2>Verification code</h2><h1>482913</h1><p>Valid 5 min</p>', ['482913']],
  ['Login', '<p>Verification code</p><p style="letter-spacing:4px">4 8 2 9 1 3</p>', ['482913']],
  ['Login', '<p>Your code</p><p>4&#8203;8&#8203;2&#8203;9&#8203;1&#8203;3</p>', ['482913']],
  ['482913 – Acme login', '<p>Log in to Acme</p><p>482913</p>', ['482913']],
  [
    'Acme',
    '<p>Please use the verification code below to sign in.</p><p>If you didn’t request this, you can ignore this email.</p><table><tr><td align=center><strong>482 913</strong></td></tr></table><p>Thanks,<br>The Acme team</p><p>Acme Inc., 548 Market St #72879, San Francisco, CA 94104</p>',
    ['482913'],
  ],
  [
    'Acme',
    '<p>To verify your email address, please use the following One Time Password (OTP):</p><p>482913</p><p>Do not share this OTP. Amazin takes your account security very seriously.</p>',
    ['482913'],
  ],
  [
    'Your order',
    '<p>Thanks for your order!</p><table><tr><td>Order number</td><td>4829130</td></tr><tr><td>Total</td><td>$129.00</td></tr><tr><td>Promo code</td><td>FALL2026</td></tr></table><p>94104</p>',
    [],
  ],
  ['Hallo', '<p>Dein Bestätigungs-Code:</p><p><strong>482 913</strong></p>', ['482913']],
  [
    'Acme',
    '<p>Hi Robin,</p><p>Here&#39;s your temporary code: </p><div style="display:none">999888</div><div>482913</div>',
    ['482913'],
  ],
  ['Confirm', '<div>您的驗證碼：</div><div><span>4</span><span>8</span><span>2</span><span>9</span></div>', ['4829']],
  ['Sign in to Medium', '<p>Click to sign in</p><p>Or enter this one-time code: <b>X4K-9PQ</b></p>', ['X4K-9PQ']],
  [
    'Acme 2-step',
    '<p>Enter the 6-digit code below to verify your identity and regain access to your LinkedOut account.</p><h2>482913</h2><p>When and where this happened:</p><p>Date: November 20, 2026, 10:12 AM (GMT)<br>Operating System: Linux<br>Approximate Location: Oslo, Norway</p><p>© 2026 LinkedOut Corporation, 1000 West Maude Avenue, Sunnyvale, CA 94085</p>',
    ['482913'],
  ],
  [
    'Bill',
    '<p>Your bill</p><table><tr><td>Account no.</td><td>10293847</td></tr><tr><td>PIN</td><td>see letter</td></tr><tr><td>Due</td><td>20261204</td></tr></table>',
    [],
  ],
  [
    'Your receipt from Acme #1029-3847',
    '<p>Receipt from Acme</p><p>$20.00 Paid November 20, 2026</p><p>Receipt number 1029-3847<br>Invoice number 48291300<br>Payment method Visa - 4242</p>',
    [],
  ],
  ['Ticket', '<p>[#48213] Your support request: code does not work</p><p>Ticket ID<br>48213</p>', []],
  ['CI', '<p>Build 48213 failed: exit code 1</p><p>see https://ci.test/48213</p><p>Commit 48213aa</p>', []],
  ['Parking', '<p>Access code for the gate: 4821#</p>', ['4821']],
  ['Verify', '<p>Your code is</p><p><code>482913</code></p><p>and expires at 10:45.</p>', ['482913']],
  ['Приглашение', '<p>Ваш одноразовый код:</p><p><b>48-29-13</b></p>', ['482913']],
  ['Verify', '<p>482913</p><p>Enter the code above to verify your account.</p>', ['482913']],
  ['Verify', '<p>Your Acme PIN has changed. If it was not you call 1800123456 at once.</p>', []],
  ['Newsletter 48', '<p>1200 devs tried our code editor. 2500 stars. Read time: 1230 sec</p>', []],
]

test.each(inHtml)('%j %j', (subject, html, codes) => {
  expect(codesIn(subject, markdownOf(html))).toEqual(codes)
})
