"""What a real training wrote, byte for byte: TensorFlow 2.21's event files, Keras 3.15's progress.

TF2: ``tf.summary`` with scalars ``epoch_loss`` (0.5, 0.4, 0.3) and ``lr``, a text and a histogram.
TF1: ``FileWriter`` with ``accuracy`` (0.25, 0.75). KERAS: ``fit`` of three epochs of two steps.
"""

from __future__ import annotations

import base64
import zlib


def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b85decode(text))


_TF2 = (
    "c-n=MPiWLY6vngJWH*`Ce>qqxs2D10kv+5?biwX4xCo1ai1tv#64zNb5H}@>Zoy+Of{GRo(w=(~=~YB2#goDc;!Q<8"
    "6)&RIc6D3-U^0_8VG5-m<na44@4d|XG9)p*eS<&il7yAh3-5+^ZMo#zPNPu1P8wlx;A|f<L(&L5zvg<)Le=w0;acdp"
    "1romx#+tqp5`XwPUK>cd_4ST?(eEF#X}A6ZXg@+^+^g2dTrUVLq-6}rRHAdGN*B^mKB(HR?FZXN-`Dz+4s&;=+WNSa"
    "bl8h_BiZ$#(laKDLZx%#Q16kX^5S661-*TeRc_C0H2qbpH6-+~79U(bob*_kYnAn*r+AOe=0CpIvs0Kqe<rDwH<~{)"
    "JuS{ZUS7B@%)fPx_t<Ry%g*GyQ2Sy=_;#h?g~aO8@`hxob>g~SMMF8Hgk&Pzcksz<F3W12RbuMhMFO=Q6}45Asau~^"
    "O*S+`*7ihC)_kq9^Gl^2RNqVM*`)fB_>u%XNVUv;;1g6U+y_2S)#g5Mjp`@&fhU@=esLf8CRK;~z)=j5R=E%SkZO(l"
    "z|Wq>`ptdd=y!_rhx@=EKg9aWec*3jWBud)I>wSH%)S@=r4lgPcZQz_X7@;aV3vc7#av{}?w9(&ET1eE^U7j&@6-oo"
    "xhYu8QNe5<sSi9t^HjMH%=VP}z%1t+7IV*Gw!hQ|X8Gr__&)$^e4mxAs2icW6NKIs-@Y0=nz}ptA893W00"
)
_TF1 = (
    "c-pgLfPkBq9G-JBFgURI9=PQw#hX-=n3<>NT9%quVr3Mh!lhJ_npd1(l$MiUu9uu&l&V)+l9{8I3X(65FE7e0NiA|b"
    "<nT)dYTAi|Q)M|{wx@zk(-P$3=i*3APA)A<Os*7VU}&(LxA|YF9L(lBLPngYIv{EV7%@~k*dKKLz6k)7=rx)"
)
_KERAS = (
    "c-qyIK?=e!5Jk6A@C4oD0@|5Onl|oxiY}xC!9_!hQNg8m@PwYkHWaa<G7Bj*%px;<1|E+o+Q#k$CKN5>5*;QoF2RYo"
    "B<b$A>yPSlT`Xh7M86t*_(}=RC;qr=#Y$Axo(`40Yy_;eOraaqjrXBVwO;(`1vJS=V}ie<A!eV^(vIyFEmM7auIlY5"
    "1pveNnKXz|5fsVk6d`@VFqDrB88t6KN^$)l*AL`_ADYmQ;$4tNoR=RmOh07UepK`TT5PDn"
)

TF2, TF1, KERAS = _unpacked(_TF2), _unpacked(_TF1), _unpacked(_KERAS)
