import { invalid } from '../../core/fault.ts'

/** Minimum length in characters. */
const shortest = 8
const longest = 256

/**
 * Throws Fault 400 for an unacceptable password (NIST SP 800-63B 3.1.1.2): length counts, and that it is not a common one; the kinds of
 * characters do not.
 */
export function requirePassword(password: string, email: string): void {
  const normalized = password.normalize('NFC')
  const characters = Array.from(normalized).length
  if (characters < shortest || characters > longest) {
    throw invalid(
      'password',
      `password must have ${shortest} to ${longest} characters; it has ${characters}.`,
      'invalid_password',
    )
  }
  const folded = normalized.toLowerCase()
  const [local = ''] = email.toLowerCase().split('@')
  if (folded === email.toLowerCase() || folded === local) {
    throw invalid('password', 'password must not be the e-mail address.', 'invalid_password')
  }
  if (commonPasswords.has(folded) || new Set(folded).size === 1) {
    throw invalid('password', 'password must not be one of the most common passwords.', 'common_password')
  }
}

/** The most common passwords, in lower case, of those that pass the length rule. */
const commonPasswords: ReadonlySet<string> = new Set(
  `password password1 password12 password123 password1234 password12345 password! password1! password01 password2 password3
    passw0rd p@ssw0rd p@ssword p@ssw0rd1 pa$$word pa$$w0rd passw0rd1 passw0rd! passpass passport passwords mypassword
    mypassword1 thepassword newpassword letmein1 letmein123 letmeinnow 12345678 123456789 1234567890 12345678910 123456789a
    123456789q 1234567891 0123456789 01234567 012345678 87654321 987654321 9876543210 0987654321 123123123 12341234
    1234512345 123321123 1234554321 112233445566 11223344 1122334455 12121212 123456123456 123454321 123698745 147258369
    147852369 159357456 741852963 789456123 963852741 987654321a 321321321 456456456 789789789 102030405060 10203040
    01020304 31415926 3141592653 27182818 qwerty12 qwerty123 qwerty1234 qwerty12345 qwerty123456 qwertyui qwertyuiop
    qwertyuiop123 qwertyuiop[] qwerty1! qwertyqwerty qweqweqwe qweasdzxc qweasd123 qwe123456 qazwsxedc qazwsx123 1qaz2wsx
    1qaz2wsx3edc 1qazxsw2 zaq12wsx zaq1zaq1 !qaz2wsx 1q2w3e4r 1q2w3e4r5t 1q2w3e4r5t6y q1w2e3r4 q1w2e3r4t5 asdfasdf asdfghjk
    asdfghjkl asdfghjkl; asdf1234 asd123456 asdasdasd zxcvbnm1 zxcvbnm123 zxcvbnm, zxcvzxcv azertyuiop azerty123 qwertz123
    qwertzui 1234qwer 123qweasd 123qweasdzxc 123qwe123 qwer1234 poiuytrewq lkjhgfdsa mnbvcxz1 abcd1234 abc12345 abc123456
    abcdefgh abcdefghi abcdefghij abcdefg1 abcabcabc a1b2c3d4 a1b2c3d4e5 aa123456 aa12345678 a12345678 a123456789 1a2b3c4d
    ab123456 abcd12345 1234abcd 12345abc 123456abc 123abc456 iloveyou iloveyou1 iloveyou2 iloveyou! iloveyou123 iloveu12
    ilovegod iloveme1 lovelove loveyou1 loveme123 mylove123 forever1 forever21 princess princess1 sunshine sunshine1
    superman superman1 batman123 spiderman spiderman1 ironman1 starwars starwars1 pokemon1 pokemon123 football football1
    baseball baseball1 basketball softball hockey12 soccer12 liverpool liverpool1 chelsea1 arsenal1 barcelona manchester
    juventus realmadrid trustno1 whatever whatever1 computer computer1 internet internet1 michelle michelle1 jennifer
    jennifer1 jessica1 ashley12 samantha michael1 jonathan charlie1 benjamin nicholas anthony1 victoria elizabeth elizabeth1
    alexander alexander1 christopher matthew1 danielle patricia veronica welcome1 welcome! welcome01 welcome12 welcome123
    welcome1234 welcome2024 welcome2025 welcome2026 admin123 admin1234 admin12345 admin@123 administrator adminadmin
    rootroot root1234 toor1234 test1234 testtest test12345 testing1 testing123 tester123 demo1234 guest123 guest1234
    user1234 username changeme changeme1 changeme! changeme123 change_me changeit default1 secret12 secret123 secretsecret
    temp1234 temporary master12 master123 access14 access123 login123 loginlogin system32 server123 oracle123 mysql123
    postgres postgres1 raspberry pillarbox pillarbox1 pillarbox123 monkey12 monkey123 dragon12 dragon123 shadow12 shadow123
    tigger12 cheese12 chocolate chocolate1 butterfly butterfly1 strawberry blink182 metallica nirvana1 slipknot1 babygirl
    babygirl1 angel123 angels12 freedom1 midnight midnight1 hello123 hello1234 hellohello hellokitty goodluck god12345
    jesuschrist jesus123 blessed1 summer12 summer123 summer2024 summer2025 summer2026 winter12 winter123 winter2024
    winter2025 winter2026 spring2024 spring2025 spring2026 autumn2024 autumn2025 autumn2026 january1 february november
    december september october1 monday123 google123 facebook facebook1 linkedin linkedin1 samsung1 samsung123 android1
    microsoft windows10 windows1 minecraft minecraft1 nintendo playstation corvette mercedes mustang1 maverick snoopy12
    scooter1 cocacola snickers rainbow1 asshole1 fuckyou1 fuckyou2 fuckyou! fuckyou123 correcthorsebatterystaple opensesame
    letmein! abracadabra blahblah xxxxxxxx aaaaaaaa 11111111 00000000 88888888 99999999 77777777 55555555 66666666`.split(/\s+/),
)
