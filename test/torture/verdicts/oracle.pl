# A further implementation of DKIM and ARC: Mail::DKIM. Answers one line of JSON for each line of JSON.
use strict;
use warnings;
use JSON::PP;
use MIME::Base64;
use Mail::DKIM::ARC::Verifier;
use Mail::DKIM::Verifier;

package Record {
    sub type { return 'TXT' }
    sub txtdata { my ($self) = @_; return @$self }
}

my $keys;
{
    no warnings 'redefine';
    *Mail::DKIM::DNS::query = sub {
        my ($name) = @_;
        my $texts = $keys->{ lc $name };
        die "DNS failure\n" if $texts && !ref $texts;
        $@ = 'NODATA';
        return $texts ? ( bless [@$texts], 'Record' ) : ();
    };
}

sub verified {
    my ( $class, $raw ) = @_;
    my $verifier = $class->new( Strict => 1 );
    $verifier->PRINT($raw);
    $verifier->CLOSE;
    return $verifier;
}

my $json = JSON::PP->new->latin1;
$| = 1;
while ( my $line = <STDIN> ) {
    my $case = $json->decode($line);
    $keys = $case->{keys};
    my $raw = decode_base64( $case->{raw} );
    my @signatures;
    eval {
        for my $signature ( verified( 'Mail::DKIM::Verifier', $raw )->signatures ) {
            my $data = $signature->data // '';
            push @signatures, { b => $data =~ s/\s//gr, result => $signature->result // 'none', reason => $signature->result_detail // '' };
        }
        1;
    } or push @signatures, { b => '', result => 'fail', reason => "$@" };
    my $arc = eval {
        my $verifier = verified( 'Mail::DKIM::ARC::Verifier', $raw );
        { result => $verifier->result // 'none', reason => $verifier->result_detail // '' };
    } // { result => 'fail', reason => "$@" };
    print $json->encode( { dkim => \@signatures, arc => $arc } ), "\n";
}
