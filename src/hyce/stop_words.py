"""Words that say little by themselves, by language: they tell a question's language, and aren't searched for.

Written down rather than taken from a library: a search must not get slower at its start, and lists made for
other fields hold words that mean something here ("use", "value", "work").
"""

# ruff: noqa: RUF001  (Cyrillic letters that look like Latin ones)

from __future__ import annotations

from functools import cache

_ENGLISH = """
a about after again all also am an and any are as at be because been before being between both but by
can cannot could did do does doing don done during each for from further get gets getting give given go
got had has have having he her here hers him his how i if in into is it its just let like make may me
might mine more most must my need no nor not of off on once only or other our ours out over own please
same shall she should so some such t s d ll m re ve than that the their theirs them then there these
they this those through to too under until up us very want was we were what when where which while who
whom why will with would you your yours
"""

_OTHERS = {
    "cs": """
a aby aj ale ani ano asi až bez bude budu by být byl byla bylo byly co což či dál další do dva i jak jaká
jaké jako jaký je jeho jej její jejich jen jestli ještě již jsem jsme jsou jste k kam každý kde kdo kdy
když ke která které který kteří ma má mají mám máme mě mezi mi mít mně můj může mohu musím můžu my na nad
nám nás náš ne nebo nebyl není než nic o od po pod podle pokud potom pro proč proto protože před při s se
si snad svůj svých ta tak také takže tam tato te tedy ten tento této tím to tohle toho tom tomu tu tuto ty
u už v vám vás váš ve více však vše vy z za zda ze že
""",
    "da": """
ad af alle alt at bare begge da de dem den denne der deres det dette dig din dine disse dit du efter eller
en end er et for fordi fra før få får gør ham han hans har havde have hende hendes her hos hun hvad hvem
hver hvilke hvilken hvis hvor hvordan hvorfor hvornår i ikke ind ingen jeg jer jeres kan kom kunne lige
man mange med meget men mig min mine mit mod må måtte ned noget nogen nogle nu når og også om op os over
på selv sig sin sine sit skal skulle som så sådan til ud under var ved vi vil ville vores være været
""",
    "de": """
aber alle allem allen aller alles als also am an auch auf aus bei beim bin bis bist da dabei dadurch dafür
damit dann daran darauf daraus darf darin das dass davon dazu dein deine dem den denn der deren des dessen
dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er
es etwas euch euer für gegen gibt hab habe haben hat hatte hier hin hinter ich ihm ihn ihnen ihr ihre
ihrem ihren ihrer im in ins ist ja jede jedem jeden jeder jedes jetzt kann kannst kein keine keinem keinen
keiner können könnte lassen lässt man manche mehr mein meine meinem meinen meiner mich mir mit muss müssen
nach nicht nichts noch nun nur ob oder ohne schon sehr sein seine seinem seinen seiner sich sie sind so
solche soll sollte sonst über um und uns unser unsere unter viel viele vom von vor wann war waren warum
was weil welche welchem welchen welcher welches wenn wer werde werden wie wieder wieso wieviel will wir
wird wo woher wohin wollen wurde wurden zu zum zur zwischen
""",
    "es": """
a al algo alguna alguno algunos ante antes aquel aquella aquí así aún aunque bien cada casi como cómo con
contra cual cuál cuáles cuando cuándo cuanta cuánta cuántas cuanto cuánto cuántos de debe debo del desde
donde dónde durante e el él ella ellas ellos en entre era es esa ese eso esos esta está están estas este
esto estos estoy fue fueron ha hace hacer hacia han hasta hay he la las le les lo los más me mi mis mucho
muchos muy nada ni no nos nosotros nuestra nuestro o os otra otro otros para pero poco por porque pueda
puede pueden puedo pues que qué quien quién quiero se sea según ser si sí sin sino sobre solo sólo son soy
su sus también tan tanto te tengo tiene tienen todo todos tras tu tus un una uno unos usted y ya yo
""",
    "fi": """
ei eivät ellei en ennen entä että hän he ilman ja jo joka jokin jolla jonka jos jossa jotka joten joita
juuri jälkeen kaikki kanssa kuin kuinka kuka kun kuten lisäksi me mihin mikä miksi millä milloin minkä
minne minulla minun minä missä mistä miten mitkä mitä mukaan mutta myös ne niiden niin niitä nyt näin nämä
ole olen oli olisi oliko olla on onko ovat sekä sen siellä siitä sillä siinä sinä sitten sitä tai te tämä
tämän tätä vai vaikka vain voi voidaan voiko voin voinko
""",
    "fr": """
a à afin ai alors après as au aucun aucune aussi autre autres aux avant avec avez avoir avons c car ce
ceci cela celle celui ces cet cette ceux chaque chez comme comment combien d dans de depuis des dois doit
donc dont du elle elles en encore entre es est et étaient était étant être eu faire fait faut ici il ils j
je l la là laquelle le lequel les lesquels leur leurs lors lorsque lui m ma mais me même mes moi moins mon
n ne ni non nos notre nous on ont ou où par parce pas pendant peu peut peuvent peux plus plusieurs pour
pourquoi puis puisque puisse qu quand que quel quelle quelles quels qui quoi s sa sans se selon ses si
sinon soit sommes son sont sous souvent suis sur t ta te tes ton tous tout toute toutes très trop tu un
une vais vers veux vos votre vous y
""",
    "it": """
a abbiamo ad agli ai al alcuni alla alle allo altra altri altro anche ancora avere c che chi ci cioè coi
col come con contro cosa così cui d da dagli dai dal dalla dalle degli dei del dell della delle dello
dentro deve devo di dopo dov dove e è ed era erano essere fa fare finché fino fra gli ha hai hanno ho i il
in invece io l la le lei lo loro lui ma me mentre mi mia mie miei mio molto ne negli nei nel nell nella
nelle nessun niente noi non nostra nostro o ogni oppure per perché però più poi possa possiamo posso può
qual quale quali qualche quando quanta quante quanti quanto quella quelle quelli quello questa queste
questi questo qui se sei senza si sia siamo solo sono sopra sotto su sua sue sugli sui sul sulla suo suoi
tra tu tua tutte tutti tutto un una uno vi voglio voi vostra vostro
""",
    "nl": """
aan al alle alleen als altijd andere ben bij binnen daar daarna dan dat de deze die dit doe doen door dus
een en er ergens geen haar had heb hebben heeft hem het hier hij hoe hoeveel hun iets ik in is ja je jij
jou jouw jullie kan kon kun kunnen maar meer men met mij mijn moet moeten mogen naar niet niets nog nu of
om omdat onder ons onze ook op over reeds sinds te tegen ten ter toch toen tot tussen u uit uw van veel
vanaf via voor waar waarin waarom wanneer want waren was wat we wel welk welke werd wie wij wil willen
word worden wordt zal ze zelf zich zij zijn zo zonder zou zouden zullen
""",
    "no": """
alle alt at av bare begge ble bli blir da de dem den denne der dere deres det dette din disse ditt du
eller en enn er et etter for fordi fra få får før gjør ha hadde han hans har henne her hos hun hva hvem
hver hvilke hvilken hvis hvor hvordan hvorfor i ikke ingen inn jeg kan kunne man mange med meg meget men
mer min mine mitt mot må ned noe noen nå når og også om opp oss over på samme seg selv sin sine sitt skal
skulle slik som så til ut uten under var ved vi vil ville vår være vært
""",
    "pl": """
a aby albo ale ani aż bez bo być był była było były będą będzie by chcę co coś czemu czy czyli dla
dlaczego do gdy gdyż gdzie go i ich ile im inne inny iż ja jak jaka jaki jakie jako je jeden jednak jego
jej jest jestem jeśli jeszcze jeżeli już każdy kiedy kto która które którego której który których którym
ku lub ma mają mam mi mnie mogę może można moje moja mój mu musi muszę my na nad nam nas nasz nasze nawet
nic nich nie nim niż o od on ona one oni oraz po pod poza ponieważ potem powinien przed przez przy są się
skąd sobie swoje ta tak także tam te tego tej ten też to tu ty tych tylko tym u w we więc wszystkie
wszystko wy z za zawsze ze że żeby
""",
    "pt": """
a à ainda algum alguma alguns além ao aos apenas após aquela aquele aqui as às até cada com como contra da
das de dela dele depois desde dessa desse desta deste devo do dos durante e é ela elas ele eles em
enquanto então entre era essa essas esse esses esta está estão estas este estes estou eu fazer foi foram
há isso isto já lhe mais mas me mesmo meu meus mim minha minhas muito muitos na não nas nem nenhum no nos
nós nossa nosso num numa o onde os ou para pela pelas pelo pelos pode podem por porque porquê posso pra
qual quais qualquer quando quanta quantas quanto quantos que quê quem quero são se seja sem sempre ser seu
seus só sobre somente sou sua suas também tem têm tenho ter teu toda todas todo todos tu tua um uma umas
uns você
""",
    "ru": """
а без более бы был была были было быть в вам вас ваш вы где да для до его ее её ей если есть ещё еще же за
здесь и из или им их к как какая какие каких какой когда кто куда ли либо между меня мне можно может могу
мои мой моя мы на над надо нам нас наш не него нее неё нельзя нет ни них но ну о об он она они оно от
откуда отчего очень по под почему при про с сам свой свои себя сейчас сколько со так также там те тем то
того тоже той только том тот ту ты у уже хочу чего чем через что чтобы эта эти это этого этой этот я
""",
    "sv": """
alla allt att av bara blir blev bli de dem den denna deras dess dessa det detta dig din dina ditt du där
då efter ej eller en er era ett finns från får för före ha hade han hans har hennes henne hon hos hur här
i icke in ingen inom inte jag ju kan kunde man med mellan men mer mig min mina mitt mot mycket måste ni nu
när någon något några och också om oss på ska skall skulle som så sådan sedan sig sin sina sitt till under
upp ut utan vad var vara varför varit varje vart vem vi vid vilka vilken vilket vill är än
""",
    "zh": """
如何 怎么 怎样 什么 为什 是否 可以 能否 我的 我们 你们 哪里 哪些 哪个 多少 一个 这个
那个 没有 不能 请问 的是 怎麼 什麼 為什 我們 哪裡
""",
}

_WORDS = {"en": frozenset(_ENGLISH.split())}


@cache
def stop_words(language: str) -> frozenset[str]:
    """The language's, in lower case; empty for one that has no list. For zh: pairs of characters."""
    return _WORDS.get(language) or frozenset(_OTHERS.get(language, "").split())


WORD_LISTS = tuple(language for language in ("en", *_OTHERS) if language != "zh")
"""Languages whose words stand apart and that have a list."""
